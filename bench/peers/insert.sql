create table events (
    event_id       varchar(255) primary key,
    event_type     varchar(128) not null,
    entity_id      varchar(128) not null,
    source_version bigint       not null,
    body           bytea        not null,
    received_at    timestamptz  not null default now()
);
