//! Private servers for tests: started from the installed programs on free ports in folders of their own.
//!
//! A process starts each kind of server once, when a test first asks for it, and every test gets a database of its own.
//! The servers end with the process, however it ends. A program that is missing is a failure that names its package.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::path::{Path, PathBuf};
use std::process::Command;

pub mod galera;
pub mod mariadb;
pub mod postgres;
mod process;
pub mod proxy;
pub mod redis;

pub use process::Process;

/// Finds an installed program, in these folders or where programs usually are.
///
/// # Panics
///
/// A program that is missing is told with the package that has it.
#[expect(
    clippy::disallowed_methods,
    reason = "that is where programs are found"
)]
pub fn program(name: &str, package: &str, folders: &[&Path]) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let folders = folders.iter().map(|folder| (*folder).to_owned());
    let mut all = folders.chain(std::env::split_paths(&path)).chain(usual);
    let found = all.find_map(|folder| {
        let file = folder.join(name);
        file.is_file().then_some(file)
    });
    found
        .unwrap_or_else(|| panic!("{name} is missing: install it with `apt-get install {package}`"))
}

/// Finds a free port.
///
/// # Panics
///
/// Fails where there is none.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Runs a command to its end.
///
/// # Panics
///
/// A failure is told with everything that the command wrote.
pub fn run(command: &mut Command) -> String {
    try_run(command).unwrap_or_else(|said| panic!("{command:?}: {said}"))
}

/// Like [`run`], for a command that may fail; the error is what it wrote.
pub(crate) fn try_run(command: &mut Command) -> Result<String, String> {
    let done = command.output().unwrap();
    let [out, err] = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text));
    match done.status.success() {
        true => Ok(out.into_owned()),
        false => Err(format!("{out}{err}")),
    }
}
