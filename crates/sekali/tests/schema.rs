//! The schema on the three databases: the same everywhere, made once however many nodes start, and readable for people.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::{BTreeMap, BTreeSet};

use sekali::{Database, Error, Result, Schema, Store, StoreOptions, chain};
use sekali_testkit::{mariadb, postgres};
use tempfile::TempDir;

const MYSQL: &str = include_str!("../migrations/mysql/0001_inbox.sql");
/// What MySQL 8 and 9 reserve and MariaDB does not, or not in every place.
const RESERVED: &str = "cube cume_dist dense_rank empty except first_value function grouping groups intersect json_table \
    lag last_value lateral lead library manual nth_value ntile of optimizer_costs over parallel percent_rank qualify rank \
    recursive row row_number rows stored system tablesample virtual window";
/// How many nodes start at once.
const NODES: usize = 12;

/// A new database of one kind, and how to ask it.
struct Place {
    kind: &'static str,
    url: String,
    _dir: Option<TempDir>,
}

fn places() -> [Place; 3] {
    let dir = TempDir::new().unwrap();
    [
        Place {
            kind: "sqlite",
            url: format!("sqlite:{}", dir.path().join("test.db").display()),
            _dir: Some(dir),
        },
        Place {
            kind: "postgres",
            url: postgres::server().database(),
            _dir: None,
        },
        Place {
            kind: "mariadb",
            url: mariadb::server().database(),
            _dir: None,
        },
    ]
}

impl Place {
    async fn open(&self, schema: Schema) -> Result<Store> {
        let options = StoreOptions {
            schema,
            exclusive: false,
            allow_unsafe_durability: true,
            ..StoreOptions::serving(Database::parse(&self.url).unwrap())
        };
        Store::open(options).await
    }

    /// Runs a query over a client of its own; null is an empty text.
    fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        if self.kind == "sqlite" {
            let path = self.url.trim_start_matches("sqlite:");
            let db = rusqlite::Connection::open(path).unwrap();
            let mut statement = db.prepare(sql).unwrap();
            let width = statement.column_count();
            let row = |row: &rusqlite::Row<'_>| {
                let text = |index| match row.get_ref_unwrap(index) {
                    rusqlite::types::ValueRef::Null => String::new(),
                    rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                    value => value.as_str().unwrap().to_owned(),
                };
                Ok((0..width).map(text).collect())
            };
            return statement
                .query_map([], row)
                .unwrap()
                .map(|row| row.unwrap())
                .collect();
        }
        let (printed, between) = match self.kind {
            "postgres" => (postgres::query(&self.url, sql), '|'),
            _ => (mariadb::query(&self.url, sql), '\t'),
        };
        let value = |text: &str| match text {
            "NULL" => String::new(),
            text => text.to_owned(),
        };
        let lines = printed.lines();
        lines
            .map(|line| line.split(between).map(value).collect())
            .collect()
    }

    fn run(&self, sql: &str) {
        match self.kind {
            "sqlite" => {
                let path = self.url.trim_start_matches("sqlite:");
                let db = rusqlite::Connection::open(path).unwrap();
                db.execute_batch(sql).unwrap();
            }
            _ => drop(self.rows(sql)),
        }
    }

    /// Lists the columns of every table of ours in their order, and which may be null.
    fn columns(&self) -> BTreeMap<String, Vec<String>> {
        let sql = match self.kind {
            "sqlite" => {
                "select m.name, c.name || case when c.\"notnull\" or c.pk then '' else '?' end \
                 from sqlite_master m join pragma_table_info(m.name) c where m.type in ('table', 'view') \
                 and (m.name like 'webhook%' or m.name like 'sekali%') order by m.name, c.cid"
            }
            "postgres" => {
                "select table_name, column_name || case is_nullable when 'YES' then '?' else '' end \
                 from information_schema.columns where table_schema = 'public' order by table_name, ordinal_position"
            }
            _ => {
                "select table_name, concat(column_name, case is_nullable when 'YES' then '?' else '' end) \
                 from information_schema.columns where table_schema = database() order by table_name, ordinal_position"
            }
        };
        let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in self.rows(sql) {
            // What a view may hold is known to one database and guessed by another.
            let column = match row[0].starts_with("sekali_") {
                true => row[1].trim_end_matches('?').to_owned(),
                false => row[1].clone(),
            };
            tables.entry(row[0].clone()).or_default().push(column);
        }
        // SQLite keeps the version in the file's head.
        tables.remove("webhook_schema");
        tables
    }

    /// Lists the keys and indexes as table, whether unique, and columns.
    fn indexes(&self) -> BTreeSet<String> {
        let sql = match self.kind {
            "sqlite" => {
                "select m.name || case when i.\"unique\" then ' unique ' else ' ' end || \
                 (select group_concat(c.name, ',') from pragma_index_info(i.name) c) \
                 from sqlite_master m join pragma_index_list(m.name) i where m.type = 'table' and m.name like 'webhook%' \
                 union all select m.name || ' unique ' || c.name from sqlite_master m join pragma_table_info(m.name) c \
                 where m.type = 'table' and m.name like 'webhook%' and c.pk = 1 and not exists \
                 (select 1 from pragma_index_list(m.name) where origin = 'pk')"
            }
            "postgres" => {
                "select t.relname || case when i.indisunique then ' unique ' else ' ' end || \
                 (select string_agg(a.attname, ',' order by k.n) from unnest(i.indkey) with ordinality k(c, n) \
                 join pg_attribute a on a.attrelid = t.oid and a.attnum = k.c) \
                 from pg_index i join pg_class t on t.oid = i.indrelid where t.relname like 'webhook%'"
            }
            _ => {
                "select concat(table_name, case when non_unique = 0 then ' unique ' else ' ' end, \
                 group_concat(column_name order by seq_in_index)) from information_schema.statistics \
                 where table_schema = database() group by table_name, index_name, non_unique"
            }
        };
        let all = self.rows(sql).into_iter().map(|row| row[0].clone());
        all.filter(|index| !index.starts_with("webhook_schema"))
            .collect()
    }
}

#[tokio::test]
async fn the_schemas_agree() {
    let all = places();
    for place in &all {
        place.open(Schema::Make).await.unwrap();
    }
    let [sqlite, postgres, mariadb] = &all;
    let columns = sqlite.columns();
    assert!(columns.len() >= 12, "{columns:?}");
    assert_eq!(columns, postgres.columns());
    assert_eq!(columns, mariadb.columns());
    let indexes = sqlite.indexes();
    assert!(indexes.len() >= 12, "{indexes:?}");
    assert_eq!(indexes, postgres.indexes());
    assert_eq!(indexes, mariadb.indexes());
}

#[tokio::test]
async fn no_name_is_a_reserved_word_of_mysql() {
    let [_, _, mariadb] = &places();
    mariadb.open(Schema::Make).await.unwrap();
    let is_reserved = |name: &&str| RESERVED.split(' ').any(|word| word == *name);
    for (table, columns) in mariadb.columns() {
        let mut names = columns.iter().map(|name| name.trim_end_matches('?'));
        assert_eq!(names.find(is_reserved), None, "{table}");
        assert!(!is_reserved(&&*table), "{table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_at_once_make_the_schema_once() {
    for place in places() {
        let place = std::sync::Arc::new(place);
        let starts = (0..NODES).map(|_| {
            let place = place.clone();
            tokio::spawn(async move { place.open(Schema::Make).await.map(drop) })
        });
        for start in starts.collect::<Vec<_>>() {
            if let Err(error) = start.await.unwrap() {
                panic!("{}: {}", place.kind, chain(&error));
            }
        }
        if place.kind != "sqlite" {
            let versions = place.rows("select count(*), max(version) from webhook_schema");
            assert_eq!(versions, [["1", "1"]], "{}", place.kind);
        }
    }
}

#[tokio::test]
async fn a_schema_of_a_later_version_is_refused() {
    for place in places() {
        place.open(Schema::Make).await.unwrap();
        place.run(match place.kind {
            "sqlite" => "pragma user_version = 99",
            _ => "insert into webhook_schema (version) values (99)",
        });
        for schema in [Schema::Make, Schema::Expect, Schema::Any] {
            let Err(Error::Conflict { problem }) = place.open(schema).await.map(drop) else {
                panic!("{} took {schema:?} of a later version", place.kind);
            };
            assert!(problem.contains("99"), "{problem}");
        }
    }
}

#[tokio::test]
async fn a_migration_that_was_cut_off_is_finished_by_the_next_start() {
    // There each statement commits by itself.
    let statements: Vec<&str> = MYSQL
        .split(";\n")
        .filter(|sql| !sql.trim().is_empty())
        .collect();
    assert!(statements.len() >= 12, "{}", statements.len());
    let whole = Place {
        kind: "mariadb",
        url: mariadb::server().database(),
        _dir: None,
    };
    whole.open(Schema::Make).await.unwrap();
    for done in 0..=statements.len() {
        let place = Place {
            kind: "mariadb",
            url: mariadb::server().database(),
            _dir: None,
        };
        if done > 0 {
            place.run(&(statements[..done].join(";\n") + ";"));
        }
        if let Err(error) = place.open(Schema::Make).await {
            panic!("after {done} statements: {}", chain(&error));
        }
        assert_eq!(place.columns(), whole.columns(), "after {done} statements");
        assert_eq!(place.indexes(), whole.indexes(), "after {done} statements");
    }
}

#[tokio::test]
async fn views_show_times_for_people() {
    for place in places() {
        place.open(Schema::Make).await.unwrap();
        let hash = match place.kind {
            "postgres" => "'\\x00ff'",
            _ => "x'00ff'",
        };
        for (id, occurred_at) in [
            ("late", "1796083200123456789"),
            ("early", "-1500000000"),
            ("full", "1796083200999999999"),
            ("never", "null"),
        ] {
            place.run(&format!(
                "insert into webhook_inbox (source, scope, event_id, event_type, entity_type, entity_id, type_rank, \
                 payload_hash, fingerprint, received_at, processing_status, occurred_at) values \
                 ('s', '', '{id}', 't', '', '', 0, {hash}, {hash}, 1796083200007, 'received', {occurred_at})"
            ));
        }
        place.run(&format!(
            "insert into webhook_deliveries (received_at, source, outcome, http_status, payload_hash, duration_us) \
             values (1796083200007, 's', 'accepted', 202, {hash}, 1)"
        ));
        let events = "select event_id, received_at, occurred_at, processed_at, payload_hash from sekali_events order by seq";
        let received = "2026-12-01T00:00:00.007Z";
        let expected = [
            [
                "late",
                received,
                "2026-12-01T00:00:00.123456789Z",
                "",
                "00ff",
            ],
            [
                "early",
                received,
                "1969-12-31T23:59:58.500000000Z",
                "",
                "00ff",
            ],
            [
                "full",
                received,
                "2026-12-01T00:00:00.999999999Z",
                "",
                "00ff",
            ],
            ["never", received, "", "", "00ff"],
        ];
        assert_eq!(place.rows(events), expected, "{}", place.kind);
        let deliveries = "select received_at, outcome, payload_hash from sekali_deliveries";
        assert_eq!(place.rows(deliveries), [[received, "accepted", "00ff"]]);
    }
}
