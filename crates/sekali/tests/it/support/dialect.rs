//! The tests' own SQL, written once the way SQLite has it and translated for the other stores.
//!
//! Only what the tests use is translated: their few types, and triggers of the form `create trigger NAME before|after
//! insert|update on TABLE when CONDITION begin STATEMENT; end`, in which `select raise(abort, 'why')` refuses the row
//! and `select busy()` runs for longer than any limit.

use super::store_name;

/// Runs for ever, a number at a time.
const COUNTS_FOR_EVER: &str = "insert into writes (entity) select max(x) from (with recursive c(x) as \
    (select 1 union all select x + 1 from c limit 1000000000000) select x from c)";

/// Writes statements as the store of this run has them.
pub(super) fn translated(sql: &str) -> Vec<String> {
    let store = store_name();
    let mut rest = sql.trim();
    let mut out = Vec::new();
    while !rest.is_empty() {
        let end = match rest.starts_with("create trigger") {
            true => rest.find("; end").map(|at| at + "; end".len()),
            false => rest.find(';'),
        };
        let (statement, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.trim_start_matches(';').trim();
        out.push(match store.as_str() {
            "sqlite" => statement.replace("select busy()", COUNTS_FOR_EVER),
            store => match Trigger::read(statement) {
                Some(trigger) => trigger.write(store),
                None => plain(statement, store),
            },
        });
    }
    out
}

/// Writes a query as the store of this run has it.
pub(super) fn query(sql: &str) -> String {
    match store_name().as_str() {
        "sqlite" => sql.to_owned(),
        "postgres" => sql.replace("cast(body as text)", "convert_from(body, 'UTF8')"),
        _ => sql.replace("cast(body as text)", "cast(body as char)"),
    }
}

fn plain(statement: &str, store: &str) -> String {
    if let (Some(name), "postgres") = (statement.strip_prefix("drop trigger "), store) {
        // There a trigger is dropped with the name of its table.
        return format!(
            "do $$ begin execute (select format('drop trigger {name} on %s', tgrelid::regclass) \
             from pg_trigger where tgname = '{name}'); end $$"
        );
    }
    match store {
        "postgres" => statement
            .replace(
                "n integer primary key",
                "n bigint generated always as identity primary key",
            )
            .replace("x'7b7d'", "'\\x7b7d'::bytea"),
        _ => statement
            .replace(
                "n integer primary key",
                "n bigint auto_increment primary key",
            )
            .replace(
                "text primary key",
                "varchar(255) character set utf8mb4 collate utf8mb4_bin primary key",
            ),
    }
}

struct Trigger<'t> {
    name: &'t str,
    time: &'t str,
    table: &'t str,
    condition: &'t str,
    body: &'t str,
}

impl<'t> Trigger<'t> {
    fn read(statement: &'t str) -> Option<Self> {
        let rest = statement.strip_prefix("create trigger ")?;
        let (name, rest) = rest.split_once(' ')?;
        let (time, rest) = rest.split_once(" on ")?;
        let (head, body) = rest.split_once(" begin")?;
        let (table, condition) = head.split_once(" when ").unwrap_or((head, "true"));
        Some(Self {
            name,
            time,
            table,
            condition,
            body: body.strip_suffix("; end")?.trim(),
        })
    }

    fn write(&self, store: &str) -> String {
        let Self {
            name, time, table, ..
        } = self;
        let why = self.body.split('\'').nth(1).unwrap_or_default();
        let is_refusal = self.body.starts_with("select raise");
        let is_busy = self.body == "select busy()";
        if store == "postgres" {
            let condition = self
                .condition
                .replace("cast(new.body as text)", "convert_from(new.body, 'UTF8')");
            let body = match (is_refusal, is_busy) {
                (true, _) => format!("raise exception '{why}'"),
                (_, true) => "perform pg_sleep(600)".to_owned(),
                _ => self.body.to_owned(),
            };
            return format!(
                "create function {name}_{table}() returns trigger language plpgsql as $$ begin \
                 if {condition} then {body}; end if; return new; end $$; \
                 create trigger {name} {time} on {table} for each row execute function {name}_{table}()"
            );
        }
        let condition = self
            .condition
            .replace("cast(new.body as text)", "cast(new.body as char)");
        let body = match (is_refusal, is_busy) {
            (true, _) => format!("signal sqlstate '45000' set message_text = '{why}'"),
            (_, true) => "do sleep(600)".to_owned(),
            _ => self.body.to_owned(),
        };
        format!(
            "create trigger {name} {time} on {table} for each row begin if {condition} then {body}; end if; end"
        )
    }
}
