//! The command line: what each command prints, its JSON, and its exit codes, most of them beside a running server.

use std::process::Output;

use super::support::{Server, Start};

mod config;
mod entities;
mod events;
mod send;

/// What a command printed and how it ended.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    /// Returns the output as JSON.
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|_| panic!("no JSON: {}{}", self.out, self.err))
    }

    /// Holds that the command ended so, and said so.
    fn assert(&self, code: i32, says: &str) {
        let said = format!("{}{}", self.out, self.err);
        assert_eq!(self.code, Some(code), "{said}");
        assert!(said.contains(says), "`{says}` is not in: {said}");
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("commands print text");
        Self {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

/// Runs a command beside a server.
fn beside(server: &Server, arguments: &[&str]) -> Ran {
    server.run(arguments).into()
}

/// Runs a command in a folder without a server.
fn alone(start: &Start, arguments: &[&str]) -> Ran {
    start.command(arguments).output().unwrap().into()
}
