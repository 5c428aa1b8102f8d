//! A source of orders on a networked database, whose effects would show a second run of an event.
//!
//! `order_writes` has a row for each time that an order was written, in that order. `runs` has a row for each event, with
//! how often it was applied and which user did it, whatever the order of its entity says about the event.

use std::time::Duration;

use super::{Database, Kind};

/// How long a claim holds.
pub(crate) const LEASE: Duration = Duration::from_secs(3);
/// How long a delivery may wait for the store.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// The sender signs a time; a node's clock may be off by up to its tolerance.
const CONFIG: &str = r#"
[server]
listen = "127.0.0.1:0"
internal_listen = "127.0.0.1:0"
answer_within = "3s"

[store]
url = "{url}"

[worker]
lease = "3s"
effect_timeout = "9s"

[[source]]
id = "orders"
scheme = "timestamped"
secrets = ["env:ORDERS_SECRET"]
tolerance = "15m"
retry = { base = "200ms", cap = "2s" }

[source.map]
event_id = "header:X-Webhook-Id"
event_type = "/type"
entity_id = "/entity_id"
version = "/source_version"
occurred_at = "/occurred_at"

[[source.effect]]
kind = "upsert"
table = "orders"
key = { entity_id = "/entity_id" }
columns = { last_event_id = "event:id" }
version_column = "version"

[[source.effect]]
kind = "upsert"
order = "none"
table = "runs"
key = { event_id = "event:id" }
columns = { entity_id = "/entity_id" }
"#;

const POSTGRES: &str = "
create table orders (entity_id text primary key, version bigint, last_event_id text not null);
create table order_writes (id bigint generated always as identity, entity_id text not null, version bigint not null);
create table runs (event_id text primary key, entity_id text, runs bigint not null default 1, node text);
create function write_order() returns trigger language plpgsql as $$
begin
    insert into order_writes (entity_id, version) values (new.entity_id, new.version);
    return null;
end; $$;
create function run() returns trigger language plpgsql as $$
begin
    if new.event_id like 'held%' then {held} end if;
    if tg_op = 'UPDATE' then new.runs := old.runs + 1; end if;
    new.node := session_user;
    return new;
end; $$;
create trigger write_order after insert or update on orders for each row execute function write_order();
create trigger run before insert or update on runs for each row execute function run();
alter table orders owner to owners;
alter table order_writes owner to owners;
alter table runs owner to owners;
";

const MARIADB: &str = "
create table orders (entity_id varchar(100) primary key, version bigint, last_event_id varchar(100) not null)
    character set utf8mb4 collate utf8mb4_bin;
create table order_writes (id bigint auto_increment primary key, entity_id varchar(100) not null, version bigint not null)
    character set utf8mb4 collate utf8mb4_bin;
create table runs (event_id varchar(100) primary key, entity_id varchar(100), runs bigint not null default 1,
    node varchar(100)) character set utf8mb4 collate utf8mb4_bin;
create trigger order_inserted after insert on orders for each row
    insert into order_writes (entity_id, version) values (new.entity_id, new.version);
create trigger order_updated after update on orders for each row
    insert into order_writes (entity_id, version) values (new.entity_id, new.version);
delimiter //
create trigger run_inserted before insert on runs for each row
begin
    if new.event_id like 'held%' then {held} end if;
    set new.node = substring_index(user(), '@', 1);
end //
create trigger run_updated before update on runs for each row
begin
    set new.runs = old.runs + 1, new.node = substring_index(user(), '@', 1);
end //
";

/// Returns the config file of a node.
pub(crate) fn config(url: &str) -> String {
    CONFIG.replace("{url}", url)
}

/// Returns the statements that make the user's tables; the write of an event `held…` can be held up.
pub(crate) fn tables(kind: Kind) -> String {
    let tables = match kind {
        Kind::Postgres => POSTGRES,
        Kind::MariaDb => MARIADB,
    };
    tables.replace("{held}", &Database::held_up(kind))
}
