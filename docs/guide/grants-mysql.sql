-- Users for MySQL and MariaDB: run by an administrator after `sekali migrate`, in the database of the receiver.
-- docs/guide/database-roles.md says what each is for. Make the hosts as narrow as you can.

create user sekali_receiver@'%' identified by 'change-me';
create user sekali_keeper@'%' identified by 'change-me';
create user sekali_reader@'%' identified by 'change-me';

-- Whoever serves: stores and applies, and can neither change nor remove what was received.
grant select on webhook_schema to sekali_receiver@'%';
grant select, insert, update on webhook_inbox to sekali_receiver@'%';
grant select, insert, update on webhook_variants to sekali_receiver@'%';
grant select, insert, update on webhook_entities to sekali_receiver@'%';
grant select, insert, update on webhook_rejections to sekali_receiver@'%';
grant select, insert on webhook_payloads to sekali_receiver@'%';
grant select, insert on webhook_deliveries to sekali_receiver@'%';
grant select, insert on webhook_attempts to sekali_receiver@'%';
grant select, insert, update on webhook_positions to sekali_receiver@'%';
grant select, insert on webhook_handshakes to sekali_receiver@'%';
grant select, insert, delete on webhook_rejected_requests to sekali_receiver@'%';
-- And what the effects need on your own tables:
-- grant select, insert, update, delete on orders to sekali_receiver@'%';

-- Whoever prunes and erases.
grant select on webhook_schema to sekali_keeper@'%';
grant select, delete on webhook_handshakes to sekali_keeper@'%';
grant select on webhook_entities to sekali_keeper@'%';
grant select, update, delete on webhook_inbox to sekali_keeper@'%';
grant select, delete on webhook_payloads to sekali_keeper@'%';
grant select, delete on webhook_deliveries to sekali_keeper@'%';
grant select, update, delete on webhook_variants to sekali_keeper@'%';
grant select, delete on webhook_positions to sekali_keeper@'%';
grant select, delete on webhook_rejections to sekali_keeper@'%';
grant select, delete on webhook_rejected_requests to sekali_keeper@'%';
grant select, insert, delete on webhook_attempts to sekali_keeper@'%';

-- Whoever looks, without bodies.
grant select on sekali_events to sekali_reader@'%';
grant select on sekali_deliveries to sekali_reader@'%';
