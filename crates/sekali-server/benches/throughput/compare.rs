//! The comparison: everybody is checked, then all lines of a part run in turn, round by round, so that the ratios hold on
//! a machine that is faster at one time than at another. A section of Markdown comes out of each part.

use std::time::Duration;

use crate::Result;
use crate::contender::{Contender, Figures, Traffic, Who};
use crate::parts::{Line, Part};
use crate::peer::Kind;
use crate::product::{Mode, Product};
use crate::servers::{Place, Servers, Store};
use crate::{check, report};

/// How the comparison is run.
pub(crate) struct Settings {
    pub(crate) rounds: usize,
    pub(crate) within: Duration,
    /// Rows of a full inbox.
    pub(crate) keys: u64,
}

/// What the rounds of a line came to.
pub(crate) type Rounds = Vec<Figures>;

/// Runs a comparison.
pub(crate) struct Comparison<'s> {
    pub(crate) settings: &'s Settings,
    pub(crate) servers: Servers,
    /// The full inbox, and the number of the next event that is sent to it.
    full: Option<(Place, usize)>,
}

impl<'s> Comparison<'s> {
    pub(crate) fn new(settings: &'s Settings) -> Self {
        Self {
            settings,
            servers: Servers::default(),
            full: None,
        }
    }

    /// Checks whoever has a line in a part, each once, and measures all lines; returns the section.
    pub(crate) async fn run(&mut self, part: &Part) -> Result<String> {
        let mut checked: Vec<(Who, Store)> = Vec::new();
        for line in &part.lines {
            if !checked.contains(&(line.who, line.store)) {
                eprintln!("{}: check {:?} on {:?}", part.name, line.who, line.store);
                let place = self.servers.place(line.store)?;
                check::check(line.who, &place, &mut self.servers).await?;
                place.remove();
                checked.push((line.who, line.store));
            }
        }
        let mut rounds: Vec<Rounds> = vec![Vec::new(); part.lines.len()];
        for round in 0..self.settings.rounds {
            for (line, rounds) in part.lines.iter().zip(&mut rounds) {
                let figures = self.line(line).await?;
                eprintln!(
                    "{}: round {}: {}: {:.0}/s",
                    part.name,
                    round + 1,
                    line.name,
                    figures.rate
                );
                rounds.push(figures);
            }
        }
        let mut section = report::section(part, &rounds);
        if let Some((place, _)) = self.full.take() {
            section.push_str(&report::lists(&lists(&place)?));
            place.remove();
        }
        Ok(section)
    }

    async fn line(&mut self, line: &Line) -> Result<Figures> {
        let (place, first) = match line.is_full {
            true => self.full(line.store)?,
            false => (self.servers.place(line.store)?, 0),
        };
        let contender = Contender::start(line.who, &place, &mut self.servers).await?;
        let mut stores = vec![place.server()];
        if line.who == Who::Peer(Kind::ExpressApply) {
            stores.push(self.servers.redis()?.1);
        }
        let traffic = Traffic {
            ids: line.ids,
            duplicates: line.duplicates,
            within: self.settings.within,
            first,
        };
        let figures = contender.measure(traffic, &stores).await?;
        drop(contender);
        if !line.is_full {
            place.remove();
            return Ok(figures);
        }
        if line.who == Who::Product(Mode::Admit) {
            // The next line's worker must not find these.
            Product::start(Mode::Apply, place.clone(), 0)?.wait_until_done()?;
        }
        self.full = Some((place, figures.next));
        Ok(figures)
    }

    /// Returns the full inbox, which is filled when it is first asked for.
    fn full(&mut self, store: Store) -> Result<(Place, usize)> {
        if let Some(full) = &self.full {
            return Ok(full.clone());
        }
        eprintln!("fill an inbox with {} keys", self.settings.keys);
        let place = self.servers.place(store)?;
        drop(Product::start(
            Mode::Admit,
            place.clone(),
            self.settings.keys,
        )?);
        self.full = Some((place.clone(), 0));
        Ok((place, 0))
    }
}

/// Measures what an operator asks of a full inbox: the command, from its start to its end.
fn lists(place: &Place) -> Result<Vec<(String, Vec<Duration>)>> {
    let product = Product::start(Mode::Admit, place.clone(), 0)?;
    let questions = [
        "",
        " --status dead_letter",
        " --entity doc_004321",
        " --id evs_000000000000012",
    ];
    let times = questions.map(|question| {
        let command = format!("events list{question}");
        let words: Vec<&str> = command.split(' ').collect();
        let times = (0..20).map(|_| product.time_of(&words)).collect();
        (command, times)
    });
    Ok(times.into())
}
