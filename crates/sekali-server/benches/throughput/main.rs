//! How fast the receiver is, beside the ceiling: a bare axum handler that only verifies and answers.
//!
//! Both are separate processes, and this one sends to them in turn over 64 keep-alive connections, so that the ratios
//! hold on any machine. Every store is counted after its run. `--store` chooses SQLite, or a private server of PostgreSQL
//! or MariaDB with its default settings.
//!
//! ```text
//! cargo bench -p sekali-server --bench throughput -- [--requests N] [--rounds N] [--keys N] [--million] [--store NAME]
//! ```

#![expect(clippy::print_stdout, reason = "a program that prints figures")]

use std::time::Duration;

mod ceiling;
mod load;
mod product;

use load::{Ids, Load};
use product::{Mode, Place, Product};

/// What is measured, unless the command line says otherwise.
struct Options {
    requests: usize,
    rounds: usize,
    /// Rows in the inbox before the run of the full inbox; 0 leaves that run out.
    keys: u64,
    /// Whether a million events are sent for the memory figure.
    million: bool,
    /// Only the answer times at this rate.
    half: Option<f64>,
    /// `sqlite`, `postgres` or `mariadb`.
    store: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "ceiling") {
        return ceiling::run();
    }
    let number = |name: &str, default: usize| {
        let place = words.iter().position(|word| word == name);
        place
            .and_then(|place| words.get(place + 1)?.parse().ok())
            .unwrap_or(default)
    };
    let options = Options {
        requests: number("--requests", 60_000),
        rounds: number("--rounds", 3),
        keys: number("--keys", 0) as u64,
        half: Some(number("--half", 0) as f64).filter(|rate| *rate > 0.0),
        million: words.iter().any(|word| word == "--million"),
        store: words
            .iter()
            .position(|word| word == "--store")
            .and_then(|place| words.get(place + 1).cloned())
            .unwrap_or_else(|| "sqlite".to_owned()),
    };
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(measure(&options))
}

async fn measure(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(rate) = options.half {
        return half_load(rate, &options.store).await;
    }
    let (mut bare, mut rows) = (Vec::new(), Vec::new());
    let kinds = [
        ("admitted, rising ids", Mode::Admit, Ids::Rising),
        ("admitted, random ids", Mode::Admit, Ids::Random),
        ("applied, rising ids", Mode::Apply, Ids::Rising),
        ("applied, random ids", Mode::Apply, Ids::Random),
    ];
    let mut rates = vec![Vec::new(); kinds.len()];
    let mut costs = vec![[0.0; 2]; kinds.len()];
    for round in 0..options.rounds {
        bare.push(ceiling_rate(options.requests, round).await?);
        for (place, (_, mode, ids)) in kinds.iter().enumerate() {
            let product = Product::start(*mode, 0, Place::new(&options.store))?;
            let before = product.processor_seconds();
            rates[place].push(product_rate(&product, options.requests, *ids).await?);
            let used = product.processor_seconds();
            let events = (options.requests * options.rounds) as f64;
            costs[place] =
                [0, 1].map(|who| costs[place][who] + (used[who] - before[who]) * 1e6 / events);
        }
        bare.push(ceiling_rate(options.requests, round).await?);
    }
    let ceiling = median(&mut bare);
    println!(
        "{:<34} {:>9}/s  {:>6}   (min..max)",
        "what", "median", "share"
    );
    print_row("ceiling: verify and answer", &mut bare, ceiling);
    for ((name, ..), rates) in kinds.iter().zip(&mut rates) {
        rows.push((*name, median(rates)));
        print_row(name, rates, ceiling);
    }
    for ((name, ..), [server, store]) in kinds.iter().zip(costs) {
        println!(
            "{name:<34} {server:>6.1} µs of the server, {store:>6.1} µs of the store's, an event"
        );
    }
    if options.keys > 0 {
        full_inbox(options, &rows).await?;
    }
    half_load(rows[3].1 / 2.0, &options.store).await?;
    if options.million {
        memory().await?;
    }
    Ok(())
}

async fn ceiling_rate(requests: usize, round: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let ceiling = ceiling::Ceiling::start()?;
    let load = Load {
        address: ceiling.address,
        requests,
        ids: Ids::Rising,
        per_second: None,
        first: round * requests,
    };
    let done = load.run().await?;
    Ok(requests as f64 / done.took.as_secs_f64())
}

/// Returns events a second until all are in the inbox or, where they are applied, until the last one is.
async fn product_rate(
    product: &Product,
    requests: usize,
    ids: Ids,
) -> Result<f64, Box<dyn std::error::Error>> {
    let started = std::time::Instant::now();
    let load = Load {
        address: product.address,
        requests,
        ids,
        per_second: None,
        first: 0,
    };
    load.run().await?;
    product.wait_until_done()?;
    let took = started.elapsed();
    product.count(requests)?;
    Ok(requests as f64 / took.as_secs_f64())
}

/// Compares a full inbox with an empty one.
async fn full_inbox(
    options: &Options,
    empty: &[(&str, f64)],
) -> Result<(), Box<dyn std::error::Error>> {
    for (place, ids) in [(0, Ids::Rising), (1, Ids::Random)] {
        let product = Product::start(Mode::Admit, options.keys, Place::File)?;
        let load = Load {
            address: product.address,
            requests: options.requests,
            ids,
            per_second: None,
            first: 0,
        };
        let started = std::time::Instant::now();
        load.run().await?;
        let rate = options.requests as f64 / started.elapsed().as_secs_f64();
        let (name, before) = empty[place];
        println!(
            "{name} with {} keys: {rate:.0}/s, {:.0} % of the empty rate",
            options.keys,
            100.0 * rate / before
        );
    }
    Ok(())
}

/// Measures how long answers take at half of what can be admitted and applied, from the scheduled time.
async fn half_load(per_second: f64, store: &str) -> Result<(), Box<dyn std::error::Error>> {
    let product = Product::start(Mode::Apply, 0, Place::new(store))?;
    let requests = (per_second * 5.0) as usize;
    let load = Load {
        address: product.address,
        requests,
        ids: Ids::Random,
        per_second: Some(per_second),
        first: 0,
    };
    let done = load.run().await?;
    let [median, p99, longest] = done.latencies();
    println!(
        "at half load ({per_second:.0}/s, applied): median {median:.1?}, 99 % {p99:.1?}, longest {longest:.1?}"
    );
    Ok(())
}

async fn memory() -> Result<(), Box<dyn std::error::Error>> {
    let product = Product::start(Mode::Apply, 0, Place::File)?;
    let load = Load {
        address: product.address,
        requests: 1_000_000,
        ids: Ids::Random,
        per_second: None,
        first: 0,
    };
    load.run().await?;
    product.wait_until_done()?;
    println!(
        "after a million events: {} MB resident",
        product.resident_bytes()? / 1_000_000
    );
    Ok(())
}

fn print_row(name: &str, rates: &mut [f64], ceiling: f64) {
    let middle = median(rates);
    let (min, max) = (rates[0], rates[rates.len() - 1]);
    println!(
        "{name:<34} {middle:>9.0}/s  {:>5.1}%   ({min:.0}..{max:.0})",
        100.0 * middle / ceiling
    );
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// How long a server may take to start.
const START_WITHIN: Duration = Duration::from_secs(120);
