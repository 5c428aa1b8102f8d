//! `sekali completions`: what a shell needs to complete commands.

use clap::Args;
use clap_complete::Shell;

/// Write completions for a shell to standard output.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, command: &mut clap::Command) -> anyhow::Result<u8> {
        clap_complete::generate(self.shell, command, "sekali", &mut std::io::stdout());
        Ok(super::DONE)
    }
}
