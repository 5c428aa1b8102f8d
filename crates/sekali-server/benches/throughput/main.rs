//! How fast the receiver is: beside the ceiling, a bare axum handler that only verifies and answers; and beside its peers,
//! handlers that somebody would write by hand.
//!
//! All are separate processes, and this one sends to them in turn over 64 keep-alive connections, so that the ratios hold
//! on any machine. Every store is counted after its run. Servers of databases are private, with their default settings.
//! The comparison with the peers needs what `bench/run` installs first.
//!
//! ```text
//! cargo bench -p sekali-server --bench throughput -- [--requests N] [--rounds N] [--keys N] [--million] [--store NAME]
//! cargo bench -p sekali-server --bench throughput -- --peer NAME [--seconds N] [--rounds N]
//! bench/run [--seconds N] [--rounds N] [--keys N] [--write] [PART…]
//! ```

#![expect(clippy::print_stdout, reason = "a program that prints figures")]

use std::path::Path;
use std::time::Duration;

mod alone;
mod ceiling;
mod check;
mod compare;
mod contender;
mod fill;
mod load;
mod machine;
mod parts;
mod peer;
mod processes;
mod product;
mod report;
mod request;
mod servers;

use compare::{Comparison, Settings};
use contender::{Contender, Traffic, Who};
use request::Ids;
use servers::{Servers, Store};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// How long a server may take to start.
const START_WITHIN: Duration = Duration::from_secs(120);

/// The words of the command line.
struct Words(Vec<String>);

impl Words {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|word| word == name)
    }

    fn text(&self, name: &str) -> Option<&str> {
        let place = self.0.iter().position(|word| word == name)?;
        self.0.get(place + 1).map(String::as_str)
    }

    fn number(&self, name: &str, default: usize) -> Result<usize> {
        self.text(name).map_or(Ok(default), |text| {
            text.parse().map_err(|_| format!("{name} {text}").into())
        })
    }
}

fn main() -> Result<()> {
    let words = Words(std::env::args().skip(1).collect());
    match words.0.first().map(String::as_str) {
        Some("ceiling") => return ceiling::run(),
        Some("hold") => return servers::hold(words.text("hold").unwrap_or_default()),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(&words))
}

async fn run(words: &Words) -> Result<()> {
    let settings = Settings {
        rounds: words.number("--rounds", 3)?.max(1),
        within: Duration::from_secs(words.number("--seconds", 8)?.max(1) as u64),
        keys: words.number("--keys", 10_000_000)? as u64,
    };
    if let Some(name) = words.text("--peer") {
        return peer(name, &settings).await;
    }
    if let Some(names) = words.text("--compare") {
        return compare(names, words.text("--write").map(Path::new), &settings).await;
    }
    let store = words.text("--store").unwrap_or("sqlite");
    let options = alone::Options {
        requests: words.number("--requests", 60_000)?,
        rounds: settings.rounds,
        keys: words.number("--keys", 0)? as u64,
        million: words.has("--million"),
        half: Some(words.number("--half", 0)? as f64).filter(|rate| *rate > 0.0),
        store: match store {
            "sqlite" => Store::Sqlite,
            "postgres" => Store::Postgres,
            "mariadb" => Store::MariaDb,
            _ => return Err(format!("--store {store}: sqlite, postgres or mariadb").into()),
        },
    };
    alone::measure(&options).await
}

/// Measures one peer.
async fn peer(name: &str, settings: &Settings) -> Result<()> {
    let kind = peer::Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let kind = kind.ok_or_else(|| format!("there is no peer {name}"))?;
    let (who, mut servers) = (Who::Peer(kind), Servers::default());
    let place = servers.place(kind.store())?;
    check::check(who, &place, &mut servers).await?;
    place.remove();
    for _ in 0..settings.rounds {
        let place = servers.place(kind.store())?;
        let contender = Contender::start(who, &place, &mut servers).await?;
        let traffic = Traffic {
            ids: Ids::Rising,
            duplicates: 0,
            within: settings.within,
            first: 0,
        };
        let figures = contender.measure(traffic, &[place.server()]).await?;
        println!("{name}: {figures:.1?}");
        drop(contender);
        place.remove();
    }
    Ok(())
}

/// Compares, prints each section as it is done, and writes it into a page.
async fn compare(names: &str, page: Option<&Path>, settings: &Settings) -> Result<()> {
    let parts = parts::all();
    let names: Vec<&str> = match names {
        "all" => parts.iter().map(|part| part.name).collect(),
        _ => names.split(',').collect(),
    };
    let machine = machine::describe();
    println!("{machine}\n");
    if let Some(page) = page {
        report::write(page, "machine", &machine)?;
    }
    let mut comparison = Comparison::new(settings);
    for name in names {
        let part = parts.iter().find(|part| part.name == name);
        let part = part.ok_or_else(|| format!("there is no part {name}"))?;
        let section = comparison.run(part).await?;
        println!("{section}");
        if let Some(page) = page {
            report::write(page, name, &section)?;
        }
    }
    Ok(())
}
