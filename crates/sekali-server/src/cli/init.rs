//! `sekali init`: a config file to start from.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;

use super::output;
use crate::config::{DEFAULT_FILE, TEMPLATE};

/// Write a config file with comments; a file that is there is never overwritten.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Where to write it; `-` writes to standard output
    #[arg(default_value = DEFAULT_FILE)]
    path: PathBuf,
}

impl Init {
    pub(crate) fn run(&self) -> anyhow::Result<u8> {
        if self.path.as_os_str() == "-" {
            output::line(TEMPLATE.trim_end());
            return Ok(super::DONE);
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&self.path);
        let mut file = match file {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                bail!(
                    "{} is there already and was left as it is",
                    self.path.display()
                )
            }
            file => file.with_context(|| format!("could not create {}", self.path.display()))?,
        };
        file.write_all(TEMPLATE.as_bytes())
            .with_context(|| format!("could not write {}", self.path.display()))?;
        output::note(&format!(
            "{} was written; add a source to it, see that `sekali check` agrees, then start `sekali serve`",
            self.path.display()
        ));
        Ok(super::DONE)
    }
}
