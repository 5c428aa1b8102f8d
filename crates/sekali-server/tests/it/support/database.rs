//! A database server of a test's own, which it may stop, fill and lock, with the users that the nodes connect as.
//!
//! It stores durably, as the tests that use it kill it. Statements of a test run as the server's administrator, beside
//! everything that the users are refused.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sekali_testkit::galera::Galera;
use sekali_testkit::mariadb::MariaDb;
use sekali_testkit::postgres::Postgres;
use sekali_testkit::program;

/// The kinds of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Postgres,
    MariaDb,
}

/// Makes a test on each kind of server out of each function.
macro_rules! on_both {
    ($($name:ident;)*) => {
        mod postgres {
            $(#[test] fn $name() { super::$name($crate::support::Kind::Postgres); })*
        }
        mod mariadb {
            $(#[test] fn $name() { super::$name($crate::support::Kind::MariaDb); })*
        }
    };
}
pub(crate) use on_both;

/// A server with one database.
pub(crate) struct Database {
    kind: Kind,
    port: u16,
    /// What it is started with beside the usual.
    settings: Vec<&'static str>,
    server: Running,
}

enum Running {
    Postgres(Postgres),
    MariaDb(MariaDb),
    /// Several servers with one database.
    Cluster(Galera),
    /// Stopped; its folder waits for the next start.
    Down(tempfile::TempDir),
    /// On the way from one to the other.
    Between,
}

const NAME: &str = "receiver";
/// What a statement in a session is that has been held up by [`Hold`].
const LOCK: &str = "4242";

/// Holds everybody up who asks for it in a trigger, until it is dropped.
pub(crate) struct Hold(Child);

impl Database {
    /// Starts a server with an empty database, and a user of each of these names who owns it.
    pub(crate) fn start(kind: Kind, users: &[&str], settings: &[&'static str]) -> Self {
        let server = match kind {
            Kind::Postgres => Running::Postgres(Postgres::start(settings)),
            Kind::MariaDb => Running::MariaDb(MariaDb::start(settings)),
        };
        let database = Self {
            kind,
            port: match &server {
                Running::Postgres(server) => server.port(),
                Running::MariaDb(server) => server.port(),
                _ => unreachable!("it was started"),
            },
            settings: settings.to_vec(),
            server,
        };
        database.make(users);
        database
    }

    /// Starts a cluster of MariaDB servers with an empty database.
    pub(crate) fn start_cluster(len: usize, users: &[&str]) -> Self {
        let cluster = Galera::start(len);
        let database = Self {
            kind: Kind::MariaDb,
            port: cluster.member(0).port(),
            settings: Vec::new(),
            server: Running::Cluster(cluster),
        };
        database.make(users);
        database
    }

    /// Makes the database and its users.
    fn make(&self, users: &[&str]) {
        let database = self;
        match self.kind {
            Kind::Postgres => {
                // What one of them makes belongs to all.
                database.run("postgres", "create role owners");
                database.run("postgres", &format!("create database {NAME} owner owners"));
                for user in users {
                    let sql = format!(
                        "create role {user} login in role owners; alter role {user} set role = 'owners'"
                    );
                    database.run("postgres", &sql);
                }
            }
            Kind::MariaDb => {
                database.run("", &format!("create database {NAME}"));
                for user in users {
                    let sql = format!(
                        "create user '{user}'@'127.0.0.1' identified by 'fake-password'; \
                         grant all on {NAME}.* to '{user}'@'127.0.0.1'"
                    );
                    database.run("", &sql);
                }
            }
        }
    }

    /// Returns the members of a cluster.
    pub(crate) fn cluster(&mut self) -> &mut Galera {
        match &mut self.server {
            Running::Cluster(cluster) => cluster,
            _ => panic!("it is no cluster"),
        }
    }

    /// Returns the URL for a user who comes to a member of a cluster.
    pub(crate) fn url_of(&self, user: &str, member: usize) -> String {
        match &self.server {
            Running::Cluster(cluster) => self.url_at(user, cluster.member(member).port()),
            _ => panic!("it is no cluster"),
        }
    }

    /// Tells whether numbers that the database gives to rows rise in the order in which they are committed.
    pub(crate) fn numbers_rise(&self) -> bool {
        !matches!(self.server, Running::Cluster(_))
    }

    /// Starts a server that follows this one, and that every commit waits for.
    pub(crate) fn standby(&self) -> Postgres {
        match &self.server {
            Running::Postgres(server) => server.standby(&self.settings),
            _ => panic!("it is no running PostgreSQL"),
        }
    }

    /// Kills the server, and puts its standby in its place.
    pub(crate) fn fail_over(&mut self, standby: Postgres) {
        self.crash();
        standby.promote();
        self.port = standby.port();
        self.server = Running::Postgres(standby);
    }

    /// Returns the URL for a user.
    pub(crate) fn url(&self, user: &str) -> String {
        self.url_at(user, self.port)
    }

    /// Returns the URL for a user who comes over another port.
    pub(crate) fn url_at(&self, user: &str, port: u16) -> String {
        match self.kind {
            Kind::Postgres => format!("postgres://{user}@127.0.0.1:{port}/{NAME}?sslmode=disable"),
            Kind::MariaDb => {
                format!("mysql://{user}:fake-password@127.0.0.1:{port}/{NAME}?ssl-mode=disabled")
            }
        }
    }

    /// Returns the kind of server.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the server's folder.
    pub(crate) fn folder(&self) -> &Path {
        match &self.server {
            Running::Postgres(server) => server.process().folder(),
            Running::MariaDb(server) => server.process().folder(),
            Running::Cluster(_) => panic!("a cluster has several"),
            Running::Down(folder) => folder.path(),
            Running::Between => unreachable!("nobody looks on the way"),
        }
    }

    /// Moves the rows of a database that nobody uses to another folder, where the server can.
    pub(crate) fn move_rows(&self, place: &Path) {
        let place = place.display();
        let tablespace = format!("create tablespace elsewhere location '{place}'");
        self.run("postgres", &tablespace);
        let moved = format!("alter database {NAME} set tablespace elsewhere");
        self.run("postgres", &moved);
    }

    /// Returns the server's port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the text for this kind of server.
    pub(crate) fn pick<T>(&self, postgres: T, mariadb: T) -> T {
        match self.kind {
            Kind::Postgres => postgres,
            Kind::MariaDb => mariadb,
        }
    }

    /// Runs statements as the administrator.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.run(NAME, sql)
    }

    /// Runs a query as the administrator, and returns the lines of its answer.
    pub(crate) fn lines(&self, sql: &str) -> Vec<String> {
        self.sql(sql).lines().map(str::to_owned).collect()
    }

    /// Runs a query that yields one number.
    pub(crate) fn count(&self, sql: &str) -> i64 {
        self.sql(sql).trim().parse().expect("a number")
    }

    fn run(&self, name: &str, sql: &str) -> String {
        match &self.server {
            Running::Postgres(server) => server.sql(name, sql),
            Running::MariaDb(server) => server.sql(name, sql),
            Running::Cluster(cluster) => cluster.any().sql(name, sql),
            Running::Down(_) | Running::Between => panic!("the server is stopped: {sql}"),
        }
    }

    /// Takes the server down without a word to anybody: its next start has to recover.
    pub(crate) fn crash(&mut self) {
        let (folder, _) = match std::mem::replace(&mut self.server, Running::Between) {
            // Its immediate stop. A kill would leave the processes of its connections behind, which hold up the next start.
            Running::Postgres(server) => server.stop("QUIT"),
            Running::MariaDb(server) => server.kill(),
            Running::Cluster(_) | Running::Down(_) | Running::Between => {
                panic!("the server is stopped already")
            }
        };
        self.server = Running::Down(folder);
    }

    /// Starts the server again where it was.
    pub(crate) fn resume(&mut self) {
        let Running::Down(folder) = std::mem::replace(&mut self.server, Running::Between) else {
            panic!("the server runs");
        };
        self.server = match self.kind {
            Kind::Postgres => {
                Running::Postgres(Postgres::resume(folder, self.port, &self.settings))
            }
            Kind::MariaDb => Running::MariaDb(MariaDb::resume(folder, self.port, &self.settings)),
        };
    }

    /// Holds up whoever runs [`Self::held_up`].
    pub(crate) fn hold(&self) -> Hold {
        let port = self.port.to_string();
        let (mut command, sql) = match self.kind {
            Kind::Postgres => {
                let mut command = Command::new(program("psql", "postgresql-client", &[]));
                command.args(["-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-U", "postgres"]);
                command.args(["-p", &port, "-d", NAME]);
                (command, format!("select pg_advisory_lock({LOCK}), 1;\n"))
            }
            Kind::MariaDb => {
                let mut command = Command::new(program("mariadb", "mariadb-client", &[]));
                command.args(["--no-defaults", "-N", "-B", "-n", "-usekali"]);
                command.args(["-pfake-password", "-h", "127.0.0.1", "-P", &port, NAME]);
                (command, format!("select get_lock('{LOCK}', 10);\n"))
            }
        };
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The session lasts as long as its input is open.
        let input = child.stdin.as_mut().unwrap();
        input.write_all(sql.as_bytes()).unwrap();
        input.flush().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.as_mut().unwrap());
        output.read_line(&mut line).unwrap();
        assert!(line.trim_end().ends_with('1'), "the lock is held: {line}");
        Hold(child)
    }

    /// Returns statements for a trigger that last as long as a [`Hold`] does.
    pub(crate) fn held_up(kind: Kind) -> String {
        match kind {
            Kind::Postgres => format!(
                "perform pg_advisory_lock_shared({LOCK}); perform pg_advisory_unlock_shared({LOCK});"
            ),
            // A second lock tells who waits for the first: in a trigger, the list of processes names its definer.
            Kind::MariaDb => format!(
                "do get_lock(substring_index(user(), '@', 1), 0); do get_lock('{LOCK}', 60); \
                 do release_lock('{LOCK}'); do release_lock(substring_index(user(), '@', 1));"
            ),
        }
    }

    /// Tells how many sessions of a user are held up.
    pub(crate) fn held_of(&self, user: &str) -> i64 {
        let sql = self.pick(
            "select count(*) from pg_stat_activity where wait_event = 'advisory' and usename = '{}'",
            "select is_used_lock('{}') is not null",
        );
        self.count(&sql.replace("{}", user))
    }

    /// Tells how many transactions of a user are open in which nothing runs.
    pub(crate) fn idle_of(&self, user: &str) -> i64 {
        let sql = self.pick(
            "select count(*) from pg_stat_activity where state like 'idle in transaction%' and usename = ",
            "select count(*) from information_schema.innodb_trx t join information_schema.processlist p \
             on p.id = t.trx_mysql_thread_id where p.command = 'Sleep' and p.user = ",
        );
        self.count(&format!("{sql}'{user}'"))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
