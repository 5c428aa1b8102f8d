create table webhook_idempotency_keys (
    idempotency_key varchar(255) primary key,
    event_type      varchar(64) not null,
    status          varchar(20) not null,
    response_code   int null,
    response_body   json null,
    created_at      timestamp default current_timestamp,
    updated_at      timestamp default current_timestamp on update current_timestamp
) engine = innodb;

create table research_documents (
    entity_id              varchar(128) primary key,
    current_source_version bigint not null,
    source_url             text not null,
    source_content_hash    varchar(128) not null,
    summary                text null,
    updated_at             timestamp not null
) engine = innodb;
