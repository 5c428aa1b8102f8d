//! A server's process, as an unprivileged user, which ends with the one that started it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub struct Process {
    child: Child,
    /// Dropped after the server has ended.
    folder: TempDir,
    user: &'static str,
}

/// Makes a folder that a user owns.
pub(crate) fn folder(user: &str) -> TempDir {
    let folder = tempfile::Builder::new()
        .prefix("sekali-")
        .tempdir()
        .unwrap();
    if is_root() {
        crate::run(Command::new("chown").arg(user).arg(folder.path()));
    }
    folder
}

/// Makes a command that runs as a user, since the servers refuse to run as root.
pub(crate) fn as_user(user: &str, program: &Path) -> Command {
    let mut command = match is_root() {
        true => {
            let setpriv = crate::program("setpriv", "util-linux", &[]);
            let mut command = Command::new(setpriv);
            let ids = ["--reuid", user, "--regid", user, "--clear-groups", "--"];
            command.args(ids).arg(program);
            command
        }
        false => Command::new(program),
    };
    command.stdin(Stdio::null());
    command
}

fn is_root() -> bool {
    crate::run(Command::new("id").arg("-u")).trim() == "0"
}

impl Process {
    /// Starts a server and waits until it is ready.
    ///
    /// # Panics
    ///
    /// A server that ends or does not get ready is told with its log.
    pub fn start(
        folder: TempDir,
        user: &'static str,
        program: &Path,
        arguments: &[String],
        is_ready: impl Fn() -> bool,
    ) -> Self {
        let (program, arguments) = (program.to_owned(), arguments.to_vec());
        let log = folder.path().join("log");
        let written = File::create(&log).unwrap();
        let (tell, told) = mpsc::channel();
        // The system ends the server with the thread that started it, so that one has to last as long as the process.
        thread::spawn(move || {
            let setpriv = crate::program("setpriv", "util-linux", &[]);
            let mut command = Command::new(setpriv);
            if is_root() {
                command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
            }
            command
                .args(["--pdeathsig", "KILL", "--"])
                .arg(program)
                .args(arguments);
            let error = written.try_clone().unwrap();
            let spawned = command
                .stdin(Stdio::null())
                .stdout(written)
                .stderr(error)
                .spawn();
            tell.send(spawned.unwrap()).unwrap();
            loop {
                thread::park();
            }
        });
        let mut process = Self {
            child: told.recv().unwrap(),
            folder,
            user,
        };
        let started = Instant::now();
        while !is_ready() {
            let has_ended = process.child.try_wait().unwrap().is_some();
            let is_late = started.elapsed() > PATIENCE;
            if has_ended || is_late {
                let log = std::fs::read_to_string(&log).unwrap_or_default();
                panic!("the server did not start: {log}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        process
    }

    /// Returns the server's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the file that the server writes its log to.
    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, such as `STOP` or `KILL`.
    ///
    /// # Panics
    ///
    /// Fails where the process is gone.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        crate::run(Command::new("kill").args(["-s", name, &id]));
    }

    /// Asks the server to end, waits until it has, and gives its folder back.
    ///
    /// # Panics
    ///
    /// Fails where the process goes on.
    pub fn stop(mut self, signal: &str) -> TempDir {
        self.signal(signal);
        let asked = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(asked.elapsed() < PATIENCE, "the server does not stop");
            thread::sleep(Duration::from_millis(5));
        }
        self.kill()
    }

    /// Ends the server without a word, and gives its folder back.
    ///
    /// # Panics
    ///
    /// Fails where the process cannot be ended.
    pub fn kill(mut self) -> TempDir {
        self.end();
        std::mem::replace(&mut self.folder, folder(self.user))
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
