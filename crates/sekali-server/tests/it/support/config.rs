//! The sources that most tests use: orders, whose id stands outside of the body, and research documents.

/// The secret of [`ORDERS`], in the variable `ORDERS_SECRET`.
pub(crate) const ORDERS_SECRET: &str = "orders-secret-not-for-production-1";

/// The secret of [`RESEARCH`], in the variable `RESEARCH_WEBHOOK_SECRET`.
pub(crate) const RESEARCH_SECRET: &str = "research-secret-not-for-production";

/// A source whose id is only in a header, so that the replay guard is on.
pub(crate) const ORDERS: &str = r#"
[[source]]
id = "orders"
scheme = "timestamped"
secrets = ["env:ORDERS_SECRET"]

[source.map]
event_id = "header:X-Webhook-Id"
event_type = "/type"
entity_id = "/entity_id"
version = "/source_version"
occurred_at = "/occurred_at"

[[source.effect]]
kind = "upsert"
when = ["unknown", "order.created", "order.updated"]
table = "orders"
key = { entity_id = "/entity_id" }
columns = { status = { from = "/status", optional = true }, last_event_id = "event:id" }
version_column = "version"

[[source.effect]]
kind = "delete"
when = ["order.deleted"]
table = "orders"
key = { entity_id = "/entity_id" }
version_column = "version"
"#;

/// The source of the shipped example, with its server and store settings left to the test.
pub(crate) const RESEARCH: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/research-sync/sekali.toml"
));

/// The tables of both sources; `order_writes` has a row for each time that an order was really written.
pub(crate) const SCHEMA: &str = concat!(
    include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/research-sync/schema.sql"
    )),
    r#"
create table if not exists orders (
    entity_id      text primary key,
    status         text,
    version        bigint,
    last_event_id  text not null
);
create table if not exists order_writes (entity_id text not null, event_id text not null);
create trigger if not exists order_inserted after insert on orders
begin
    insert into order_writes values (new.entity_id, new.last_event_id);
end;
create trigger if not exists order_updated after update on orders
begin
    insert into order_writes values (new.entity_id, new.last_event_id);
end;
"#
);

/// Makes the body of an order's event.
pub(crate) fn order(entity_id: &str, version: i64, status: &str) -> String {
    format!(
        r#"{{"entity_id":"{entity_id}","source_version":{version},"occurred_at":"2026-01-02T03:04:05Z","status":"{status}"}}"#
    )
}

/// Returns [`ORDERS`] with further settings of the source.
pub(crate) fn orders_with(settings: &str) -> String {
    let id = "id = \"orders\"\n";
    ORDERS.replacen(id, &format!("{id}{settings}\n"), 1)
}
