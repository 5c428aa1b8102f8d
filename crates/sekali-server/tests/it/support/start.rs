//! The start of the process under test: its folder, its config file, its environment, and the line that says it is ready.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::{ORDERS_SECRET, PATIENCE, RESEARCH_SECRET, SCHEMA, Server};

/// What a server is started with.
pub(crate) struct Start {
    pub(super) folder: TempDir,
    env: Vec<(String, String)>,
}

impl Start {
    /// Lays the config file, with free ports and a database, and the set-up statements into a new folder.
    pub(crate) fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let start = Self {
            folder,
            env: vec![
                ("ORDERS_SECRET".into(), ORDERS_SECRET.into()),
                ("RESEARCH_WEBHOOK_SECRET".into(), RESEARCH_SECRET.into()),
            ],
        };
        start
            .file("schema.sql", SCHEMA)
            .file("sekali.toml", complete(config))
    }

    /// Sets a variable of the environment; nothing else but the secrets is in it.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.into(), value.into()));
        self
    }

    /// Leaves a variable out of the environment.
    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self
    }

    /// Writes a file into the folder.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.folder.path().join(name), content).unwrap();
        self
    }

    /// Prepares a command of the binary in this folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sekali"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts the server and waits until it is ready.
    pub(crate) fn serve(self) -> Server {
        let log = Arc::new(Mutex::new(String::new()));
        let process = Process::spawn(&self, &log).unwrap_or_else(|log| panic!("no start:\n{log}"));
        Server::of(self, log, process)
    }

    /// Starts a server that must refuse to run, and returns what it says.
    pub(crate) fn refusal(self) -> String {
        let log = Arc::new(Mutex::new(String::new()));
        match Process::spawn(&self, &log) {
            Err(log) => log,
            Ok(_) => panic!("started:\n{}", log.lock().unwrap()),
        }
    }
}

/// Puts ports and database into the tables of a config file, or appends the tables.
pub(super) fn complete(config: &str) -> String {
    let mut config = config
        .lines()
        .filter(|line| {
            !["listen = ", "url = ", "setup = "]
                .iter()
                .any(|key| line.starts_with(key))
        })
        .fold(String::new(), |text, line| text + line + "\n");
    for (table, keys) in [
        (
            "[server]\n",
            "listen = \"127.0.0.1:0\"\ninternal_listen = \"127.0.0.1:0\"\n",
        ),
        (
            "[store]\n",
            "url = \"sqlite:sekali.db\"\nsetup = \"schema.sql\"\n",
        ),
    ] {
        match config.find(table) {
            Some(at) => config.insert_str(at + table.len(), keys),
            None => config += &format!("\n{table}{keys}"),
        }
    }
    config
}

/// The process, and where it listens.
pub(super) struct Process {
    pub(super) child: Child,
    pub(super) address: String,
    pub(super) internal: String,
}

impl Process {
    /// Starts `serve`; the error is the log of a process that ended instead of becoming ready.
    pub(super) fn spawn(start: &Start, log: &Arc<Mutex<String>>) -> Result<Self, String> {
        let mut child = start
            .command(&["serve", "--config", "sekali.toml"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (say, said) = channel();
        let kept = log.clone();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                *kept.lock().unwrap() += &format!("{line}\n");
                if let Some(addresses) = ready(&line) {
                    let _ = say.send(addresses);
                }
            }
        });
        match wait_ready(&said) {
            Ok((address, internal)) => Ok(Self {
                child,
                address,
                internal,
            }),
            Err(RecvTimeoutError::Disconnected) => {
                let status = child.wait().unwrap();
                assert!(!status.success(), "a start that fails says so: {status}");
                Err(log.lock().unwrap().clone())
            }
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                panic!("neither ready nor ended:\n{}", log.lock().unwrap())
            }
        }
    }
}

type Addresses = (String, String);

fn wait_ready(said: &Receiver<Addresses>) -> Result<Addresses, RecvTimeoutError> {
    said.recv_timeout(PATIENCE)
}

/// Reads the addresses out of the line that says the server is ready, in either log format.
fn ready(line: &str) -> Option<Addresses> {
    let field = |name: &str| {
        [format!(" {name}="), format!("\"{name}\":\"")]
            .iter()
            .find_map(|mark| line.split_once(mark.as_str()))
            .map(|(_, rest)| rest.split([' ', '"']).next().unwrap_or_default().to_owned())
    };
    let is_ready = line.contains(" ready ") || line.contains("\"message\":\"ready\"");
    is_ready.then_some(())?;
    Some((field("address")?, field("internal")?))
}
