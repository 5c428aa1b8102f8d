-- Users for MySQL and MariaDB: run by an administrator in the database of the receiver, after `sekali migrate`, and again
-- after each later one. docs/guide/database-roles.md says what each is for. Make the hosts as narrow as you can. A user
-- that this makes is locked until `alter user … identified by … account unlock`.

create user if not exists sekali_receiver@'%' account lock;
create user if not exists sekali_keeper@'%' account lock;
create user if not exists sekali_reader@'%' account lock;

-- Whoever serves: stores and applies, and can neither change nor remove what was received.
grant select on webhook_schema to sekali_receiver@'%';
grant select, insert on webhook_payloads to sekali_receiver@'%';
grant select, insert on webhook_deliveries to sekali_receiver@'%';
grant select, insert on webhook_attempts to sekali_receiver@'%';
grant select, insert, update (seen, last_at, decision) on webhook_variants to sekali_receiver@'%';
-- An insert that passes over a row that is there asks for the right to change all its columns.
grant select, insert, update on webhook_inbox to sekali_receiver@'%';
grant select, insert, update on webhook_entities to sekali_receiver@'%';
grant select, insert, update on webhook_positions to sekali_receiver@'%';
grant select, insert, update on webhook_rejections to sekali_receiver@'%';
-- These two hold a bounded number of rows for each source.
grant select, insert, delete on webhook_handshakes to sekali_receiver@'%';
grant select, insert, delete on webhook_rejected_requests to sekali_receiver@'%';
-- And what the effects need on your own tables:
-- grant select, insert, update, delete on orders to sekali_receiver@'%';

-- Whoever prunes and erases.
grant select on webhook_schema to sekali_keeper@'%';
grant select on webhook_entities to sekali_keeper@'%';
grant select, delete on webhook_payloads to sekali_keeper@'%';
grant select, delete on webhook_deliveries to sekali_keeper@'%';
grant select, delete on webhook_positions to sekali_keeper@'%';
grant select, delete on webhook_rejections to sekali_keeper@'%';
grant select, delete on webhook_handshakes to sekali_keeper@'%';
grant select, delete on webhook_rejected_requests to sekali_keeper@'%';
grant select, insert, delete on webhook_attempts to sekali_keeper@'%';
grant select, delete, update (headers, body) on webhook_variants to sekali_keeper@'%';
grant select, delete,
      update (processing_status, status_reason, response, error_message, next_attempt_at, lease_until, lease_token)
    on webhook_inbox to sekali_keeper@'%';

-- Whoever looks, without bodies.
grant select on sekali_events to sekali_reader@'%';
grant select on sekali_deliveries to sekali_reader@'%';
