-- The inbox and its audit trail. Times are bigint milliseconds UTC; occurred_at is bigint nanoseconds UTC.
-- Keys compare as bytes: collation "C".

create table webhook_inbox (
    seq                bigint generated always as identity primary key,
    source             text collate "C" not null,
    scope              text collate "C" not null,
    event_id           text collate "C" not null,
    event_type         text collate "C" not null,
    entity_type        text collate "C" not null,
    entity_id          text collate "C" not null,
    source_version     bigint,
    occurred_at        bigint,
    type_rank          bigint  not null,
    source_url         text,
    content_hash       text,
    producer           text,
    delivered_at       text,
    payload_hash       bytea   not null,
    fingerprint        bytea   not null,
    replay_key         bytea,
    signature_valid    bigint,
    received_at        bigint  not null,
    processed_at       bigint,
    processing_status  text collate "C" not null,
    status_reason      text collate "C",
    http_status        bigint,
    error_message      text,
    attempts           bigint  not null default 0,
    next_attempt_at    bigint,
    lease_until        bigint,
    lease_token        text collate "C",
    response           bytea,
    traceparent        text,
    bypass_equal       bigint  not null default 0
) with (fillfactor = 85);

create unique index webhook_inbox_key on webhook_inbox (source, scope, event_id);
create unique index webhook_inbox_replay on webhook_inbox (source, replay_key) where replay_key is not null;
-- What a worker may claim: for a row in processing, next_attempt_at is the end of its lease.
create index webhook_inbox_due on webhook_inbox (next_attempt_at, seq)
    where processing_status in ('received', 'failed', 'processing');
create index webhook_inbox_trouble on webhook_inbox (processing_status, seq)
    where processing_status in ('failed', 'dead_letter');

create table webhook_payloads (
    seq      bigint primary key,
    headers  text  not null,
    body     bytea not null
);

create function webhook_payloads_append_only() returns trigger language plpgsql as $$
begin
    raise exception 'webhook_payloads is append only';
end;
$$;

create trigger webhook_payloads_append_only before update on webhook_payloads
    for each row execute function webhook_payloads_append_only();

create table webhook_deliveries (
    id               bigint generated always as identity primary key,
    received_at      bigint  not null,
    source           text collate "C" not null,
    inbox_seq        bigint,
    outcome          text collate "C" not null,
    reason           text collate "C",
    http_status      bigint  not null,
    payload_hash     bytea,
    signature_valid  bigint,
    remote_address   text,
    duration_us      bigint  not null
);

create index webhook_deliveries_event on webhook_deliveries (inbox_seq) where inbox_seq is not null;

-- Rejected deliveries past the bound, counted by minute.
create table webhook_rejections (
    minute   bigint  not null,
    source   text collate "C" not null,
    outcome  text collate "C" not null,
    count    bigint  not null,
    primary key (minute, source, outcome)
);

create table webhook_variants (
    id            bigint generated always as identity primary key,
    inbox_seq     bigint  not null,
    event_id      text collate "C" not null,
    payload_hash  bytea   not null,
    seen          bigint  not null,
    first_at      bigint  not null,
    last_at       bigint  not null,
    headers       text    not null,
    body          bytea,
    decision      text collate "C"
);

create unique index webhook_variants_key on webhook_variants (inbox_seq, payload_hash, event_id);

create table webhook_entities (
    source         text collate "C" not null,
    scope          text collate "C" not null,
    entity_type    text collate "C" not null,
    entity_id      text collate "C" not null,
    version        bigint,
    occurred_at    bigint,
    type_rank      bigint  not null default 0,
    last_event_id  text collate "C",
    state          text collate "C",
    deleted        bigint  not null default 0,
    -- Set by an operator's reset until the next event: the row of the user's table may then stand above it.
    reset_at       bigint,
    updated_at     bigint  not null,
    primary key (source, scope, entity_type, entity_id)
) with (fillfactor = 70);

-- Which events are about an entity, by version (-1 for none).
create table webhook_positions (
    entity_id       text collate "C" not null,
    entity_type     text collate "C" not null,
    source          text collate "C" not null,
    scope           text collate "C" not null,
    source_version  bigint  not null,
    seq             bigint  not null,
    primary key (entity_id, entity_type, source, scope, source_version, seq)
);

create table webhook_attempts (
    id           bigint generated always as identity primary key,
    inbox_seq    bigint  not null,
    attempt      bigint  not null,
    started_at   bigint  not null,
    duration_us  bigint  not null,
    status       text collate "C" not null,
    reason       text collate "C",
    message      text,
    decisions    text    not null
);

create index webhook_attempts_event on webhook_attempts (inbox_seq);

-- What providers asked beside sending events, and what became of it.
create table webhook_handshakes (
    id              bigint generated always as identity primary key,
    source          text collate "C" not null,
    at_ms           bigint  not null,
    kind            text collate "C" not null,
    outcome         text collate "C" not null,
    remote_address  text,
    detail          text,
    secret          text
);

create index webhook_handshakes_source on webhook_handshakes (source, id);

-- Requests with a wrong signature, where a source keeps some to be looked at.
create table webhook_rejected_requests (
    id              bigint generated always as identity primary key,
    source          text collate "C" not null,
    at_ms           bigint  not null,
    reason          text collate "C" not null,
    method          text    not null,
    url             text    not null,
    headers         text    not null,
    body            bytea   not null
);

create index webhook_rejected_requests_source on webhook_rejected_requests (source, id);

create view sekali_events as
select seq, source, scope, event_id, event_type, entity_type, entity_id, source_version,
       to_char(to_timestamp((occurred_at - ((occurred_at % 1000000000 + 1000000000) % 1000000000)) / 1000000000)
           at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.')
           || lpad(((occurred_at % 1000000000 + 1000000000) % 1000000000)::text, 9, '0') || 'Z' as occurred_at,
       processing_status, status_reason, attempts, error_message,
       to_char(to_timestamp(received_at / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as received_at,
       to_char(to_timestamp(processed_at / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as processed_at,
       to_char(to_timestamp(next_attempt_at / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as next_attempt_at,
       source_url, content_hash, producer, encode(payload_hash, 'hex') as payload_hash
from webhook_inbox;

create view sekali_deliveries as
select id, source, inbox_seq, outcome, reason, http_status, signature_valid, remote_address, duration_us,
       to_char(to_timestamp(received_at / 1000.0) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as received_at,
       encode(payload_hash, 'hex') as payload_hash
from webhook_deliveries;
