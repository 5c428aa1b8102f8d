-- Roles for PostgreSQL: run by the owner of the tables after `sekali migrate`, in the database of the receiver.
-- docs/guide/database-roles.md says what each is for.

create role sekali_receiver login;    -- and a password, or a way to authenticate
create role sekali_keeper login;
create role sekali_reader;

-- Whoever serves: stores and applies, and can neither change nor remove what was received.
grant select on webhook_schema to sekali_receiver;
grant select, insert, update on webhook_inbox, webhook_variants, webhook_entities, webhook_rejections to sekali_receiver;
grant select, insert on webhook_payloads, webhook_deliveries, webhook_attempts, webhook_positions, webhook_handshakes
    to sekali_receiver;
grant select, insert, delete on webhook_rejected_requests to sekali_receiver;
-- And what the effects need on your own tables:
-- grant select, insert, update, delete on orders to sekali_receiver;

-- Whoever prunes and erases.
grant select on webhook_schema, webhook_entities to sekali_keeper;
grant select, update, delete on webhook_inbox, webhook_variants to sekali_keeper;
grant select, delete on webhook_payloads, webhook_deliveries, webhook_positions, webhook_rejections,
    webhook_handshakes, webhook_rejected_requests to sekali_keeper;
grant select, insert, delete on webhook_attempts to sekali_keeper;

-- Whoever looks, without bodies.
grant select on sekali_events, sekali_deliveries to sekali_reader;
