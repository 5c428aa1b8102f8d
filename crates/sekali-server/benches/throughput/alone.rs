//! The product beside the ceiling, on one store: what is admitted and applied a second, how long answers take at half of it,
//! what a full inbox and a million events do to it.

use crate::load::Load;
use crate::processes::{processor_seconds, resident_bytes};
use crate::product::{Mode, Product};
use crate::request::Ids;
use crate::servers::{Place, Servers, Store};
use crate::{Result, ceiling};

/// What is measured, unless the command line says otherwise.
pub(crate) struct Options {
    pub(crate) requests: usize,
    pub(crate) rounds: usize,
    /// Rows in the inbox before the run of the full inbox; 0 leaves that run out.
    pub(crate) keys: u64,
    /// Whether a million events are sent for the memory figure.
    pub(crate) million: bool,
    /// Only the answer times at this rate.
    pub(crate) half: Option<f64>,
    pub(crate) store: Store,
}

const KINDS: [(&str, Mode, Ids); 4] = [
    ("admitted, rising ids", Mode::Admit, Ids::Rising),
    ("admitted, random ids", Mode::Admit, Ids::Random),
    ("applied, rising ids", Mode::Apply, Ids::Rising),
    ("applied, random ids", Mode::Apply, Ids::Random),
];

pub(crate) async fn measure(options: &Options) -> Result<()> {
    let mut servers = Servers::default();
    if let Some(rate) = options.half {
        return half_load(rate, servers.place(options.store)?).await;
    }
    let (mut bare, mut rates, mut costs) = (Vec::new(), vec![Vec::new(); 4], [[0.0; 2]; 4]);
    for round in 0..options.rounds {
        bare.push(ceiling_rate(options.requests, round).await?);
        for (kind, (_, mode, ids)) in KINDS.iter().enumerate() {
            let place = servers.place(options.store)?;
            let product = Product::start(*mode, place.clone(), 0)?;
            let used = || [product.id(), place.server()].map(processor_seconds);
            let before = used();
            rates[kind].push(product_rate(&product, options.requests, *ids).await?);
            let after = used();
            let events = (options.requests * options.rounds) as f64;
            costs[kind] =
                [0, 1].map(|who| costs[kind][who] + (after[who] - before[who]) * 1e6 / events);
            drop(product);
            place.remove();
        }
        bare.push(ceiling_rate(options.requests, round).await?);
    }
    let ceiling = median(&mut bare);
    println!(
        "{:<34} {:>9}/s  {:>6}   (min..max)",
        "what", "median", "share"
    );
    print_row("ceiling: verify and answer", &mut bare, ceiling);
    let mut rows = Vec::new();
    for ((name, ..), rates) in KINDS.iter().zip(&mut rates) {
        rows.push((*name, median(rates)));
        print_row(name, rates, ceiling);
    }
    for ((name, ..), [server, store]) in KINDS.iter().zip(costs) {
        println!(
            "{name:<34} {server:>6.1} µs of the server, {store:>6.1} µs of the store's, an event"
        );
    }
    if options.keys > 0 {
        full_inbox(options, &rows, &mut servers).await?;
    }
    half_load(rows[3].1 / 2.0, servers.place(options.store)?).await?;
    if options.million {
        memory().await?;
    }
    Ok(())
}

async fn ceiling_rate(requests: usize, round: usize) -> Result<f64> {
    let ceiling = ceiling::Ceiling::start()?;
    let load = Load {
        first: round * requests,
        ..Load::new(ceiling.address, requests)
    };
    let done = load.run().await?;
    Ok(requests as f64 / done.took.as_secs_f64())
}

/// Returns events a second until all are in the inbox or, where they are applied, until the last one is.
async fn product_rate(product: &Product, requests: usize, ids: Ids) -> Result<f64> {
    let started = std::time::Instant::now();
    let load = Load {
        ids,
        ..Load::new(product.address, requests)
    };
    load.run().await?;
    product.wait_until_done()?;
    let took = started.elapsed();
    product.count(requests, Some(requests))?;
    Ok(requests as f64 / took.as_secs_f64())
}

/// Compares a full inbox with an empty one.
async fn full_inbox(options: &Options, empty: &[(&str, f64)], servers: &mut Servers) -> Result<()> {
    for (kind, ids) in [(0, Ids::Rising), (1, Ids::Random)] {
        let place = servers.place(options.store)?;
        let product = Product::start(Mode::Admit, place.clone(), options.keys)?;
        let rate = product_rate(&product, options.requests, ids).await?;
        let (name, before) = empty[kind];
        println!(
            "{name} with {} keys: {rate:.0}/s, {:.0} % of the empty rate",
            options.keys,
            100.0 * rate / before
        );
        drop(product);
        place.remove();
    }
    Ok(())
}

/// Measures how long answers take at half of what can be admitted and applied, from the scheduled time.
async fn half_load(per_second: f64, place: Place) -> Result<()> {
    let product = Product::start(Mode::Apply, place, 0)?;
    let load = Load {
        ids: Ids::Random,
        per_second: Some(per_second),
        ..Load::new(product.address, (per_second * 5.0) as usize)
    };
    let [median, p99, longest] = load.run().await?.latencies();
    println!(
        "at half load ({per_second:.0}/s, applied): median {median:.1?}, 99 % {p99:.1?}, longest {longest:.1?}"
    );
    Ok(())
}

async fn memory() -> Result<()> {
    let product = Product::start(Mode::Apply, Place::File, 0)?;
    let load = Load {
        ids: Ids::Random,
        ..Load::new(product.address, 1_000_000)
    };
    load.run().await?;
    product.wait_until_done()?;
    let bytes = resident_bytes(product.id()).ok_or("no figure")?;
    println!("after a million events: {} MB resident", bytes / 1_000_000);
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
