-- The table that the research source keeps up to date. It is yours: add columns, indexes and triggers as you like.
create table if not exists research_documents (
    entity_id              varchar(128) primary key,
    current_source_version bigint       not null,
    source_url             text         not null,
    source_content_hash    varchar(128) not null,
    title                  text,
    summary                text,
    authors                text,
    citations              text,
    published_at           varchar(40),
    last_event_id          varchar(255) not null,
    updated_at             varchar(40)  not null
);
