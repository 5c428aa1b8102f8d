-- The inbox and its audit trail. Times are bigint milliseconds UTC; occurred_at is bigint nanoseconds UTC.
-- Keys are varbinary: no collation takes two of them for one, and blanks at the end count.
-- That payloads are append only is a matter of grants here: a trigger would need a right that servers with a binary log
-- give to nobody.

create table if not exists webhook_inbox (
    seq                bigint not null auto_increment primary key,
    source             varbinary(255) not null,
    scope              varbinary(255) not null,
    event_id           varbinary(255) not null,
    event_type         varbinary(255) not null,
    entity_type        varbinary(255) not null,
    entity_id          varbinary(255) not null,
    source_version     bigint,
    occurred_at        bigint,
    type_rank          bigint  not null,
    source_url         varchar(2048),
    content_hash       varbinary(255),
    producer           varchar(255),
    delivered_at       varchar(255),
    payload_hash       varbinary(64) not null,
    fingerprint        varbinary(64) not null,
    replay_key         varbinary(64),
    signature_valid    bigint,
    received_at        bigint  not null,
    processed_at       bigint,
    processing_status  varchar(32) character set ascii collate ascii_bin not null,
    status_reason      varchar(64) character set ascii collate ascii_bin,
    http_status        bigint,
    error_message      text,
    attempts           bigint  not null default 0,
    next_attempt_at    bigint,
    lease_until        bigint,
    lease_token        varbinary(64),
    response           longblob,
    traceparent        varchar(255),
    bypass_equal       bigint  not null default 0,
    unique key webhook_inbox_key (source, scope, event_id),
    unique key webhook_inbox_replay (source, replay_key),
    -- What a worker may claim: for a row in processing, next_attempt_at is the end of its lease; done rows have none.
    key webhook_inbox_due (next_attempt_at, seq),
    key webhook_inbox_status (processing_status, seq)
) engine = innodb default character set = utf8mb4;

create table if not exists webhook_payloads (
    seq      bigint not null primary key,
    headers  longtext not null,
    body     longblob not null
) engine = innodb default character set = utf8mb4;

create table if not exists webhook_deliveries (
    id               bigint not null auto_increment primary key,
    received_at      bigint  not null,
    source           varbinary(255) not null,
    inbox_seq        bigint,
    outcome          varchar(64) character set ascii collate ascii_bin not null,
    reason           varchar(64) character set ascii collate ascii_bin,
    http_status      bigint  not null,
    payload_hash     varbinary(64),
    signature_valid  bigint,
    remote_address   varchar(255),
    duration_us      bigint  not null,
    key webhook_deliveries_event (inbox_seq)
) engine = innodb default character set = utf8mb4;

-- Rejected deliveries past the bound, counted by minute.
create table if not exists webhook_rejections (
    minute   bigint  not null,
    source   varbinary(255) not null,
    outcome  varchar(64) character set ascii collate ascii_bin not null,
    count    bigint  not null,
    primary key (minute, source, outcome)
) engine = innodb default character set = utf8mb4;

create table if not exists webhook_variants (
    id            bigint not null auto_increment primary key,
    inbox_seq     bigint  not null,
    event_id      varbinary(255) not null,
    payload_hash  varbinary(64) not null,
    seen          bigint  not null,
    first_at      bigint  not null,
    last_at       bigint  not null,
    headers       longtext not null,
    body          longblob,
    decision      varchar(64) character set ascii collate ascii_bin,
    unique key webhook_variants_key (inbox_seq, payload_hash, event_id)
) engine = innodb default character set = utf8mb4;

create table if not exists webhook_entities (
    source         varbinary(255) not null,
    scope          varbinary(255) not null,
    entity_type    varbinary(255) not null,
    entity_id      varbinary(255) not null,
    version        bigint,
    occurred_at    bigint,
    type_rank      bigint  not null default 0,
    last_event_id  varbinary(255),
    state          varchar(64) character set ascii collate ascii_bin,
    deleted        bigint  not null default 0,
    -- Set by an operator's reset until the next event: the row of the user's table may then stand above it.
    reset_at       bigint,
    updated_at     bigint  not null,
    primary key (source, scope, entity_type, entity_id)
) engine = innodb default character set = utf8mb4;

-- Which events are about an entity, by version (-1 for none).
create table if not exists webhook_positions (
    entity_id       varbinary(255) not null,
    entity_type     varbinary(255) not null,
    source          varbinary(255) not null,
    scope           varbinary(255) not null,
    source_version  bigint  not null,
    seq             bigint  not null,
    primary key (entity_id, entity_type, source, scope, source_version, seq)
) engine = innodb default character set = utf8mb4;

create table if not exists webhook_attempts (
    id           bigint not null auto_increment primary key,
    inbox_seq    bigint  not null,
    attempt      bigint  not null,
    started_at   bigint  not null,
    duration_us  bigint  not null,
    status       varchar(32) character set ascii collate ascii_bin not null,
    reason       varchar(64) character set ascii collate ascii_bin,
    message      text,
    decisions    longtext not null,
    key webhook_attempts_event (inbox_seq)
) engine = innodb default character set = utf8mb4;

-- What providers asked beside sending events, and what became of it.
create table if not exists webhook_handshakes (
    id              bigint not null auto_increment primary key,
    source          varbinary(255) not null,
    at_ms           bigint  not null,
    kind            varchar(255) not null,
    outcome         varchar(64) character set ascii collate ascii_bin not null,
    remote_address  varchar(255),
    detail          text,
    secret          text,
    key webhook_handshakes_source (source, id)
) engine = innodb default character set = utf8mb4;

-- Requests with a wrong signature, where a source keeps some to be looked at.
create table if not exists webhook_rejected_requests (
    id              bigint not null auto_increment primary key,
    source          varbinary(255) not null,
    at_ms           bigint  not null,
    reason          varchar(64) character set ascii collate ascii_bin not null,
    method          varchar(255) not null,
    url             longtext not null,
    headers         longtext not null,
    body            longblob not null,
    key webhook_rejected_requests_source (source, id)
) engine = innodb default character set = utf8mb4;

create or replace view sekali_events as
select seq, convert(source using utf8mb4) as source, convert(scope using utf8mb4) as scope,
       convert(event_id using utf8mb4) as event_id, convert(event_type using utf8mb4) as event_type,
       convert(entity_type using utf8mb4) as entity_type, convert(entity_id using utf8mb4) as entity_id, source_version,
       concat(date_format(date_add('1970-01-01', interval (occurred_at - mod(mod(occurred_at, 1000000000) + 1000000000, 1000000000))
                            div 1000000000 second), '%Y-%m-%dT%H:%i:%s.'),
              lpad(mod(mod(occurred_at, 1000000000) + 1000000000, 1000000000), 9, '0'), 'Z') as occurred_at,
       processing_status, status_reason, attempts, error_message,
       concat(date_format(date_add('1970-01-01', interval floor(received_at / 1000) second), '%Y-%m-%dT%H:%i:%s.'),
              lpad(mod(received_at, 1000), 3, '0'), 'Z') as received_at,
       concat(date_format(date_add('1970-01-01', interval floor(processed_at / 1000) second), '%Y-%m-%dT%H:%i:%s.'),
              lpad(mod(processed_at, 1000), 3, '0'), 'Z') as processed_at,
       concat(date_format(date_add('1970-01-01', interval floor(next_attempt_at / 1000) second), '%Y-%m-%dT%H:%i:%s.'),
              lpad(mod(next_attempt_at, 1000), 3, '0'), 'Z') as next_attempt_at,
       source_url, convert(content_hash using utf8mb4) as content_hash, producer, lower(hex(payload_hash)) as payload_hash
from webhook_inbox;

create or replace view sekali_deliveries as
select id, convert(source using utf8mb4) as source, inbox_seq, outcome, reason, http_status, signature_valid,
       remote_address, duration_us,
       concat(date_format(date_add('1970-01-01', interval floor(received_at / 1000) second), '%Y-%m-%dT%H:%i:%s.'),
              lpad(mod(received_at, 1000), 3, '0'), 'Z') as received_at,
       lower(hex(payload_hash)) as payload_hash
from webhook_deliveries;
