//! A private Redis server.

use std::process::Command;

use tempfile::TempDir;

use crate::process::{Process, folder};

const USER: &str = "redis";

/// A Redis server.
pub struct Redis {
    process: Process,
    port: u16,
}

impl Redis {
    /// Starts a server with settings of its own, such as `--maxmemory`.
    ///
    /// # Panics
    ///
    /// A server that cannot be started fails the test.
    pub fn start(settings: &[&str]) -> Self {
        Self::resume(folder(USER), crate::free_port(), settings)
    }

    /// Starts a server in the place of an earlier one; it remembers nothing.
    ///
    /// # Panics
    ///
    /// A server that cannot be started fails the test.
    pub fn resume(folder: TempDir, port: u16, settings: &[&str]) -> Self {
        let port_text = port.to_string();
        let folder_text = folder.path().display().to_string();
        let usual = [
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--port",
            &port_text,
            "--dir",
            &folder_text,
        ];
        let arguments = usual.iter().chain(settings);
        let arguments: Vec<String> = arguments.map(|text| (*text).to_owned()).collect();
        let is_ready = || {
            let mut ping = client(port);
            let answer = ping.arg("ping").output();
            answer.is_ok_and(|answer| answer.stdout.starts_with(b"PONG"))
        };
        let program = crate::program("redis-server", "redis-server", &[]);
        let process = Process::start(folder, USER, &program, &arguments, is_ready);
        Self { process, port }
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Runs a command and returns what it prints.
    ///
    /// # Panics
    ///
    /// A server that cannot be reached fails the test.
    pub fn run(&self, arguments: &[&str]) -> String {
        crate::run(client(self.port).args(arguments))
            .trim()
            .to_owned()
    }

    /// Returns the server's process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Ends the server without a word; its folder and port can be taken up again.
    ///
    /// # Panics
    ///
    /// Fails where the process cannot be ended.
    pub fn kill(self) -> (TempDir, u16) {
        (self.process.kill(), self.port)
    }
}

fn client(port: u16) -> Command {
    let mut command = Command::new(crate::program("redis-cli", "redis-tools", &[]));
    command.args(["-h", "127.0.0.1", "-p", &port.to_string()]);
    command
}
