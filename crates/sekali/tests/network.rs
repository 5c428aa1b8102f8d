//! Stores behind a network: which servers are taken, how long one is waited for, and what processes tell each other.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use sekali::event::Delivery;
use sekali::identify::{Arrival, identify};
use sekali::observer::Observer;
use sekali::store::{Conn, Ping, ReadDepth, Transaction};
use sekali::{
    Clock, Database, Engine, EngineOptions, Error, Limits, Result, Source, SourceConfig, Sources,
    Store, StoreOptions, chain,
};
use sekali_testkit::mariadb::{self, MariaDb};
use sekali_testkit::postgres::{self, Postgres};
use sekali_verify::NoDocuments;

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(30);

fn options(url: &str) -> StoreOptions {
    StoreOptions {
        allow_unsafe_durability: true,
        ..StoreOptions::serving(Database::parse(url).unwrap())
    }
}

fn durable(url: &str) -> StoreOptions {
    StoreOptions {
        allow_unsafe_durability: false,
        ..options(url)
    }
}

async fn refused(options: StoreOptions) -> String {
    match Store::open(options).await {
        Ok(_) => panic!("it was opened"),
        Err(error) => chain(&error),
    }
}

#[tokio::test]
async fn a_server_that_may_lose_what_it_committed_is_refused_unless_that_is_allowed() {
    // The servers of tests do not wait for the disk.
    for (url, setting) in [
        (postgres::server().database(), "f"),
        (
            mariadb::server().database(),
            "innodb_flush_log_at_trx_commit",
        ),
    ] {
        let said = refused(durable(&url)).await;
        assert!(
            said.starts_with("store.allow_unsafe_durability: "),
            "{said}"
        );
        assert!(
            said.contains(setting) && said.contains("may lose"),
            "{said}"
        );
        Store::open(options(&url)).await.unwrap();
    }
    let binary_log = MariaDb::start(&["--log-bin=log", "--sync-binlog=0"]);
    let said = refused(durable(&binary_log.database())).await;
    assert!(said.contains("sync_binlog = 0"), "{said}");
    let pages = Postgres::start(&["full_page_writes=off"]);
    let said = refused(durable(&pages.database())).await;
    assert!(said.contains("full_page_writes"), "{said}");
}

struct Ask(&'static str);

impl Transaction for Ask {
    type Output = String;
    const STEP: &'static str = "ask";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<String> {
        let told = conn.fetch_one(self.0, &[], |row| row.text(0)).await;
        let told = told.map_err(|source| Error::Store {
            step: Self::STEP,
            source,
        });
        Ok(told?.unwrap())
    }
}

#[tokio::test]
async fn commits_are_durable_whatever_the_role_says() {
    let server = Postgres::start(&["synchronous_commit=off"]);
    for (role, setting) in [("a", "off"), ("b", "local"), ("c", "remote_apply")] {
        let sql = format!(
            "create role {role} superuser login; alter role {role} set synchronous_commit = {setting}"
        );
        server.sql("postgres", &sql);
        let url = server.database().replace("postgres@", &format!("{role}@"));
        let store = Store::open(durable(&url)).await.unwrap();
        let commit = store.write(Ask("select current_setting('synchronous_commit')"));
        let expected = match setting {
            "remote_apply" => setting,
            _ => "on",
        };
        assert_eq!(commit.await.unwrap(), expected, "of {setting}");
    }
}

#[tokio::test]
async fn what_waiting_cannot_mend_is_said_at_once_and_without_the_password() {
    let (postgres, mariadb) = (postgres::server(), mariadb::server());
    for url in [
        postgres.url("not_there"),
        mariadb.url("not_there"),
        mariadb
            .url("mysql")
            .replace("fake-password", "wrong-password"),
    ] {
        let began = Instant::now();
        let said = refused(options(&url)).await;
        assert!(began.elapsed() < options(&url).connect_within / 2, "{said}");
        assert!(
            said.contains("not_there") || said.contains("denied"),
            "{said}"
        );
        assert!(
            !said.contains("password)") && !said.contains("wrong-password"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_waited_for_with_a_bound() {
    let url = format!(
        "postgres://me:fake-secret@127.0.0.1:{}/x",
        sekali_testkit::free_port()
    );
    let within = Duration::from_millis(700);
    let began = Instant::now();
    let said = refused(StoreOptions {
        connect_within: within,
        ..options(&url)
    })
    .await;
    assert!(began.elapsed() >= within / 2);
    assert!(said.contains("could not be reached within 0.7 s"), "{said}");
    assert!(
        said.contains("postgres://127.0.0.1") && !said.contains("fake-secret"),
        "{said}"
    );
    let beside = StoreOptions {
        connect_within: Duration::ZERO,
        ..options(&url)
    };
    let said = refused(beside).await;
    assert!(said.contains("cannot be reached: "), "{said}");
}

#[tokio::test]
async fn a_database_that_comes_up_meanwhile_is_used() {
    let server = Postgres::start(&[]);
    let url = server.database();
    let (folder, port) = server.kill();
    let waiting = tokio::spawn(Store::open(options(&url)));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    let resumed = tokio::task::spawn_blocking(move || Postgres::resume(folder, port, &[]));
    let _server = resumed.await.unwrap();
    waiting.await.unwrap().unwrap();
}

struct Sleep(&'static str);

impl Transaction for Sleep {
    type Output = ();
    const STEP: &'static str = "sleep";

    fn within(&self) -> Duration {
        Duration::from_millis(300)
    }

    async fn run(&self, conn: &mut Conn<'_>) -> Result<()> {
        conn.now_ms().await.unwrap();
        let slept = conn.fetch_one(self.0, &[], |_| Ok(())).await;
        slept.map(drop).map_err(|source| Error::Store {
            step: Self::STEP,
            source,
        })
    }
}

#[tokio::test]
async fn transactions_that_do_not_end_are_ended_and_use_up_no_connections() {
    for (url, sleep, running) in [
        (
            postgres::server().database(),
            "select pg_sleep(600)",
            "select count(*) from pg_stat_activity where query like '%pg_sleep%' and pid <> pg_backend_pid()",
        ),
        (
            mariadb::server().database(),
            "select sleep(600)",
            "select count(*) from information_schema.processlist where info like 'select sleep%'",
        ),
    ] {
        let store = Store::open(options(&url)).await.unwrap();
        let sleeps = (0..30).map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.write(Sleep(sleep)).await })
        });
        for slept in sleeps.collect::<Vec<_>>() {
            assert!(slept.await.unwrap().is_err());
        }
        let end = Instant::now() + PATIENCE;
        // Those that end the statements stand before it.
        while let Err(error) = store.read(Ping).await {
            assert!(Instant::now() < end, "{}", chain(&error));
        }
        while asked(&url, running) != "0" {
            assert!(Instant::now() < end, "statements still run at the server");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn asked(url: &str, sql: &str) -> String {
    let said = match url.starts_with("postgres") {
        true => postgres::query(url, sql),
        false => mariadb::query(url, sql),
    };
    said.trim().to_owned()
}

struct Silent;

impl Observer for Silent {}

const SOURCE: &str = r#"
id = "docs"
unsigned = true
map = { event_id = "/id" }
"#;

async fn node(url: &str, workers: usize) -> Engine {
    let config: SourceConfig = toml::from_str(SOURCE).unwrap();
    let source = Source::build(config, &|_| Ok(Vec::new())).unwrap();
    let store = Store::open(options(url)).await.unwrap();
    let options = EngineOptions {
        sources: Sources::new(vec![source]).unwrap(),
        retired: Vec::new(),
        limits: Limits {
            // Only a hint can wake a worker.
            poll: Duration::from_secs(3600),
            ..Limits::default()
        },
        clock: Clock::System,
        observer: Arc::new(Silent),
        workers,
    };
    Engine::start(store, options).await.unwrap()
}

async fn admit(node: &Engine, id: &str) {
    let (headers, body) = (HeaderMap::new(), format!(r#"{{"id":"{id}"}}"#).into());
    let source = node.sources().get("docs").unwrap();
    let now_ms = node.clock().now_ms();
    let request = sekali_verify::Request::post(&headers, &body);
    let Ok(verified) = source.verify(&request, now_ms, &NoDocuments) else {
        panic!("an unsigned source takes everything");
    };
    let arrival = Arrival {
        headers: &headers,
        url: None,
        now_ms,
    };
    let delivery = Delivery {
        event: identify(source, &verified, arrival).unwrap().remove(0),
        source: source.clone(),
        received_at: now_ms,
        started: Instant::now(),
        remote_address: None,
        only_if_known: None,
    };
    node.admission().admit(delivery).await.unwrap();
}

#[tokio::test]
async fn a_node_that_stored_an_event_wakes_the_workers_of_another() {
    let server = postgres::server();
    let url = server.database();
    let name = url.rsplit('/').next().unwrap().split('?').next().unwrap();
    let (receives, applies) = (node(&url, 0).await, node(&url, 1).await);
    let drained = async || {
        let end = Instant::now() + PATIENCE;
        while receives.store().read(ReadDepth).await.unwrap().pending > 0 {
            assert!(Instant::now() < end, "nobody woke the worker");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    for number in 0..5 {
        admit(&receives, &format!("a-{number}")).await;
        drained().await;
    }
    // A listener whose connection was cut listens again.
    let cut = format!(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}' and query like 'LISTEN%'"
    );
    assert_eq!(server.sql("postgres", &cut).trim(), "t");
    admit(&receives, "b").await;
    drained().await;
    receives.stop(PATIENCE).await;
    applies.stop(PATIENCE).await;
}
