-- The inbox and its audit trail. Times are bigint milliseconds UTC; occurred_at is bigint nanoseconds UTC.
-- Keys compare as bytes: SQLite's default collation is binary.

create table webhook_inbox (
    seq                integer primary key autoincrement,
    source             text    not null,
    scope              text    not null,
    event_id           text    not null,
    event_type         text    not null,
    entity_type        text    not null,
    entity_id          text    not null,
    source_version     bigint,
    occurred_at        bigint,
    type_rank          bigint  not null,
    source_url         text,
    content_hash       text,
    producer           text,
    delivered_at       text,
    payload_hash       blob    not null,
    fingerprint        blob    not null,
    replay_key         blob,
    signature_valid    integer,
    received_at        bigint  not null,
    processed_at       bigint,
    processing_status  text    not null,
    status_reason      text,
    http_status        integer,
    error_message      text,
    attempts           integer not null default 0,
    next_attempt_at    bigint,
    lease_until        bigint,
    lease_token        text,
    response           blob,
    traceparent        text,
    bypass_equal       integer not null default 0
);

create unique index webhook_inbox_key on webhook_inbox (source, scope, event_id);
create unique index webhook_inbox_replay on webhook_inbox (source, replay_key) where replay_key is not null;
-- What a worker may claim: for a row in processing, next_attempt_at is the end of its lease.
create index webhook_inbox_due on webhook_inbox (next_attempt_at, seq)
    where processing_status in ('received', 'failed', 'processing');
create index webhook_inbox_trouble on webhook_inbox (processing_status, seq)
    where processing_status in ('failed', 'dead_letter');

create table webhook_payloads (
    seq      integer primary key,
    headers  text not null,
    body     blob not null
);

create trigger webhook_payloads_append_only before update on webhook_payloads
begin
    select raise(abort, 'webhook_payloads is append only');
end;

create table webhook_deliveries (
    id               integer primary key autoincrement,
    received_at      bigint  not null,
    source           text    not null,
    inbox_seq        bigint,
    outcome          text    not null,
    reason           text,
    http_status      integer not null,
    payload_hash     blob,
    signature_valid  integer,
    remote_address   text,
    duration_us      bigint  not null
);

create index webhook_deliveries_event on webhook_deliveries (inbox_seq) where inbox_seq is not null;

-- Rejected deliveries past the bound, counted by minute.
create table webhook_rejections (
    minute   bigint  not null,
    source   text    not null,
    outcome  text    not null,
    count    bigint  not null,
    primary key (minute, source, outcome)
) without rowid;

create table webhook_variants (
    id            integer primary key autoincrement,
    inbox_seq     bigint  not null,
    event_id      text    not null,
    payload_hash  blob    not null,
    seen          bigint  not null,
    first_at      bigint  not null,
    last_at       bigint  not null,
    headers       text    not null,
    body          blob,
    decision      text
);

create unique index webhook_variants_key on webhook_variants (inbox_seq, payload_hash, event_id);

create table webhook_entities (
    source         text    not null,
    scope          text    not null,
    entity_type    text    not null,
    entity_id      text    not null,
    version        bigint,
    occurred_at    bigint,
    type_rank      bigint  not null default 0,
    last_event_id  text,
    state          text,
    deleted        integer not null default 0,
    -- Set by an operator's reset until the next event: the row of the user's table may then stand above it.
    reset_at       bigint,
    updated_at     bigint  not null,
    primary key (source, scope, entity_type, entity_id)
) without rowid;

-- Which events are about an entity, by version (-1 for none). A table of its own, written by the worker: as an index of the
-- inbox it would have every admission write a page somewhere in the middle of it.
create table webhook_positions (
    entity_id       text    not null,
    entity_type     text    not null,
    source          text    not null,
    scope           text    not null,
    source_version  bigint  not null,
    seq             bigint  not null,
    primary key (entity_id, entity_type, source, scope, source_version, seq)
) without rowid;

create table webhook_attempts (
    id           integer primary key autoincrement,
    inbox_seq    bigint  not null,
    attempt      integer not null,
    started_at   bigint  not null,
    duration_us  bigint  not null,
    status       text    not null,
    reason       text,
    message      text,
    decisions    text    not null
);

create index webhook_attempts_event on webhook_attempts (inbox_seq);

-- What providers asked beside sending events, and what became of it.
create table webhook_handshakes (
    id              integer primary key autoincrement,
    source          text    not null,
    at_ms           bigint  not null,
    kind            text    not null,
    outcome         text    not null,
    remote_address  text,
    detail          text,
    secret          text
);

create index webhook_handshakes_source on webhook_handshakes (source, id);

-- Requests with a wrong signature, where a source keeps some to be looked at.
create table webhook_rejected_requests (
    id              integer primary key autoincrement,
    source          text    not null,
    at_ms           bigint  not null,
    reason          text    not null,
    method          text    not null,
    url             text    not null,
    headers         text    not null,
    body            blob    not null
);

create index webhook_rejected_requests_source on webhook_rejected_requests (source, id);


create view sekali_events as
select seq, source, scope, event_id, event_type, entity_type, entity_id, source_version,
       case when occurred_at is not null
            then strftime('%Y-%m-%dT%H:%M:%S', (occurred_at - ((occurred_at % 1000000000 + 1000000000) % 1000000000))
            / 1000000000, 'unixepoch')
            || printf('.%09dZ', ((occurred_at % 1000000000 + 1000000000) % 1000000000)) end as occurred_at,
       processing_status, status_reason, attempts, error_message,
       strftime('%Y-%m-%dT%H:%M:%fZ', received_at / 1000.0, 'unixepoch') as received_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', processed_at / 1000.0, 'unixepoch') as processed_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', next_attempt_at / 1000.0, 'unixepoch') as next_attempt_at,
       source_url, content_hash, producer, lower(hex(payload_hash)) as payload_hash
from webhook_inbox;

create view sekali_deliveries as
select id, source, inbox_seq, outcome, reason, http_status, signature_valid, remote_address, duration_us,
       strftime('%Y-%m-%dT%H:%M:%fZ', received_at / 1000.0, 'unixepoch') as received_at,
       lower(hex(payload_hash)) as payload_hash
from webhook_deliveries;
