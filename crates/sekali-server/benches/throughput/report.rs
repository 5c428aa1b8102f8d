//! The comparison as sections of Markdown, which are written into a page between the lines that mark their places.

use std::path::Path;
use std::time::Duration;

use crate::Result;
use crate::compare::Rounds;
use crate::contender::Figures;
use crate::parts::{Part, Ratio};

/// Returns a part's section: a table of its lines, and one of its ratios.
pub(crate) fn section(part: &Part, rounds: &[Rounds]) -> String {
    let mut text = format!(
        "### {}\n\n| what | deliveries a second | p50 ms | p99 ms | receiver µs | servers µs |\n| --- | --- | --- | --- | --- | --- |\n",
        part.title
    );
    for (line, rounds) in part.lines.iter().zip(rounds) {
        let of = |value: fn(&Figures) -> f64| Spread::of(rounds.iter().map(value));
        let (rate, p50, p99) = (of(|f| f.rate), of(|f| f.p50), of(|f| f.p99));
        let (receiver, stores) = (of(|f| f.receiver), of(|f| f.stores));
        text.push_str(&format!(
            "| {} | {:.0} ({:.0}..{:.0}) | {:.1} | {:.1} | {:.0} | {:.0} |\n",
            line.name,
            rate.median,
            rate.min,
            rate.max,
            p50.median,
            p99.median,
            receiver.median,
            stores.median
        ));
    }
    text.push_str("\n| ratio | figure | goal |\n| --- | --- | --- |\n");
    for ratio in &part.ratios {
        text.push_str(&ratio_row(part, rounds, ratio));
    }
    text
}

fn ratio_row(part: &Part, rounds: &[Rounds], ratio: &Ratio) -> String {
    let [of, over] = [ratio.of, ratio.over].map(|line| &rounds[line]);
    let each = Spread::of(of.iter().zip(over).map(|(of, over)| of.rate / over.rate));
    let medians = [of, over].map(|rounds| Spread::of(rounds.iter().map(|f| f.rate)).median);
    let figure = medians[0] / medians[1];
    let goal = match ratio.goal {
        None => String::new(),
        Some(goal) if figure >= goal => format!("≥ {goal}"),
        Some(goal) => format!("≥ {goal}, missed"),
    };
    let [of, over] = [ratio.of, ratio.over].map(|line| part.lines[line].name);
    format!(
        "| {of} ÷ {over} | {figure:.2} ({:.2}..{:.2}) | {goal} |\n",
        each.min, each.max
    )
}

/// Returns the table of what lists of the full inbox take.
pub(crate) fn lists(times: &[(String, Vec<Duration>)]) -> String {
    let mut text = "\n| command in the full inbox | median ms | longest ms | goal |\n| --- | --- | --- | --- |\n".to_owned();
    for (command, times) in times {
        let times = Spread::of(times.iter().map(|time| time.as_secs_f64() * 1e3));
        let goal = match times.median < 100.0 {
            true => "< 100",
            false => "< 100, missed",
        };
        let (median, longest) = (times.median, times.max);
        text.push_str(&format!(
            "| `sekali {command}` | {median:.1} | {longest:.1} | {goal} |\n"
        ));
    }
    text
}

/// Writes a section into a page, between the two lines that mark its place.
pub(crate) fn write(page: &Path, name: &str, section: &str) -> Result<()> {
    let text = std::fs::read_to_string(page)?;
    let (begin, end) = (
        format!("<!-- bench/run {name} -->\n"),
        format!("<!-- end of {name} -->"),
    );
    let place = text.split_once(&begin);
    let Some((before, Some((_, after)))) =
        place.map(|(before, rest)| (before, rest.split_once(&end)))
    else {
        return Err(format!("{} has no place for {name}", page.display()).into());
    };
    std::fs::write(
        page,
        format!("{before}{begin}\n{}\n\n{end}{after}", section.trim_end()),
    )?;
    Ok(())
}

struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Self {
            median: values[values.len() / 2],
            min: values[0],
            max: values[values.len() - 1],
        }
    }
}
