-- Roles for PostgreSQL: run as a superuser in the database of the receiver, after `sekali migrate`, and again after each
-- later one. docs/guide/database-roles.md says what each is for. A role that this makes has no password yet.

do $$
begin
    if to_regrole('sekali_receiver') is null then create role sekali_receiver login; end if;
    if to_regrole('sekali_keeper') is null then create role sekali_keeper login; end if;
    if to_regrole('sekali_reader') is null then create role sekali_reader login; end if;
end;
$$;

-- Only the owner makes anything here; before PostgreSQL 15 everybody could.
revoke create on schema public from public;
grant usage on schema public to sekali_receiver, sekali_keeper, sekali_reader;

-- Whoever serves: stores and applies, and can neither change nor remove what was received.
grant select on webhook_schema to sekali_receiver;
grant select, insert on webhook_inbox, webhook_payloads, webhook_deliveries, webhook_rejections, webhook_variants,
    webhook_entities, webhook_positions, webhook_attempts to sekali_receiver;
-- These two hold a bounded number of rows for each source.
grant select, insert, delete on webhook_handshakes, webhook_rejected_requests to sekali_receiver;
-- What becomes of an event; not what it is, where it stands in the order, and what it brought.
grant update (processing_status, status_reason, error_message, attempts, next_attempt_at, processed_at, lease_until,
              lease_token, replay_key, bypass_equal) on webhook_inbox to sekali_receiver;
grant update (seen, last_at, decision) on webhook_variants to sekali_receiver;
grant update (version, occurred_at, type_rank, last_event_id, deleted, reset_at, updated_at)
    on webhook_entities to sekali_receiver;
grant update (count) on webhook_rejections to sekali_receiver;
-- And what the effects need on your own tables:
-- grant select, insert, update, delete on orders to sekali_receiver;

-- Whoever prunes and erases.
grant select on webhook_schema, webhook_entities to sekali_keeper;
grant select, delete on webhook_inbox, webhook_payloads, webhook_deliveries, webhook_rejections, webhook_variants,
    webhook_positions, webhook_handshakes, webhook_rejected_requests to sekali_keeper;
grant select, insert, delete on webhook_attempts to sekali_keeper;
grant update (processing_status, status_reason, response, error_message, next_attempt_at, lease_until, lease_token)
    on webhook_inbox to sekali_keeper;
grant update (headers, body) on webhook_variants to sekali_keeper;

-- Whoever looks, without bodies.
grant select on sekali_events, sekali_deliveries to sekali_reader;
