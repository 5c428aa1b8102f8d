create table processed_webhooks (
    id         bigserial    primary key,
    event_id   varchar(255) not null unique,
    entity_id  varchar(128) not null,
    event_type varchar(128) not null,
    created_at timestamptz  not null default now()
);

create table documents (
    entity_id              varchar(128) primary key,
    current_source_version bigint       not null,
    summary                text,
    updated_at             timestamptz  not null
);

create table counters (
    entity_id varchar(128) primary key,
    applied   bigint       not null
);

-- The documents that the load is about: the handler updates what is there.
insert into documents select 'doc_' || lpad(n::text, 6, '0'), -1, null, now() from generate_series(0, 9999) n;
insert into counters select entity_id, 0 from documents;
