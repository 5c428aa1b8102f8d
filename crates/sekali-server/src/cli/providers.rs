//! `sekali providers`: what is known about each provider, as a list, in full, as JSON, or as the page of the docs.

use std::fmt::Write as _;

use clap::Args;
use sekali_verify::{EventIds, Place, Places, Preset};
use serde_json::{Value, json};

use super::{DONE, output};

/// List the providers that are known, or show everything about one.
#[derive(Debug, Args)]
pub(crate) struct Providers {
    /// Show this one in full
    name: Option<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print the page of the documentation
    #[arg(long, hide = true)]
    markdown: bool,
}

impl Providers {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let presets = match &self.name {
            Some(name) => vec![Preset::find(name).ok_or_else(|| sekali::Error::NotFound {
                what: "provider",
                name: name.clone(),
            })?],
            None => Preset::all().collect(),
        };
        if self.json {
            let all: Vec<Value> = presets.into_iter().map(describe).collect();
            output::json(&Value::from(all))?;
        } else if self.markdown {
            output::line(page().trim_end());
        } else if self.name.is_some() {
            presets
                .into_iter()
                .for_each(|preset| output::line(section(preset).trim_end()));
        } else {
            let row = |preset: &Preset| {
                vec![
                    preset.name.to_owned(),
                    preset.title.clone(),
                    preset.covers.word().to_owned(),
                    first(&ids(preset)),
                    first(&places(&preset.map.event_type)),
                ]
            };
            let rows = presets.into_iter().map(row).collect();
            output::table(&["preset", "provider", "signed", "event id", "type"], rows);
        }
        Ok(DONE)
    }
}

/// The list has room for the place that is asked first; `sekali providers NAME` shows all.
fn first(list: &str) -> String {
    list.split(", ").next().unwrap_or_default().to_owned()
}

fn describe(preset: &Preset) -> Value {
    let handshakes: Vec<&str> = preset
        .handshakes
        .iter()
        .map(|handshake| handshake.name.as_str())
        .collect();
    let settings: serde_json::Map<String, Value> = preset
        .settings
        .iter()
        .map(|(name, rule)| {
            let rule = json!({
                "about": rule.about, "optional": rule.optional || rule.default.is_some(), "secret": rule.secret,
                "default": rule.default,
            });
            (name.clone(), rule)
        })
        .collect();
    json!({
        "preset": preset.name,
        "title": preset.title,
        "covers": preset.covers.word(),
        "uncovered": preset.uncovered,
        "id_signed": preset.id_signed,
        "replay_guard": preset.replay_guard,
        "secret": preset.secret,
        "settings": settings,
        "tolerance_seconds": preset.tolerance.map(|span| span.0.as_secs()),
        "handshakes": handshakes,
        "batch": preset.batch.iter().map(sekali_verify::Pattern::as_str).collect::<Vec<_>>(),
        "event_id": ids(preset),
        "event_type": places(&preset.map.event_type),
        "entity_id": places(&preset.map.entity_id),
        "order": order(preset),
        "success": preset.answer.status.unwrap_or(202),
        "retries": { "schedule": preset.retries.schedule, "window": preset.retries.window, "timestamp": preset.retries.timestamp.word() },
        "can_send": preset.can_sign(),
        "limits": preset.limits,
        "confirmed": preset.confirmed,
        "unconfirmed": preset.unconfirmed,
    })
}

fn ids(preset: &Preset) -> String {
    match &preset.map.event_id {
        Some(EventIds::From(list)) => list_of(&list.0),
        _ => "none: every delivery is an event".to_owned(),
    }
}

fn order(preset: &Preset) -> String {
    match (&preset.map.version, &preset.map.occurred_at) {
        (Some(version), _) => list_of(&version.0),
        (None, Some(time)) => list_of(&time.0),
        (None, None) => "none: order by arrival".to_owned(),
    }
}

fn places(list: &Option<Places>) -> String {
    list.as_ref()
        .map_or_else(|| "-".to_owned(), |list| list_of(&list.0))
}

fn list_of(list: &[Place]) -> String {
    let texts: Vec<String> = list.iter().map(Place::to_string).collect();
    texts.join(", ")
}

/// Writes the page of the documentation.
fn page() -> String {
    let mut text = String::from(concat!(
        "# Providers\n\n",
        "This page is made from the preset files by `sekali providers --markdown`; a test keeps it current. What stands under\n",
        "*unconfirmed* rests on general knowledge and was not seen in a source: check it before you depend on it.\n\n",
        "`preset = \"NAME\"` in a `[[source]]` takes everything below; what the source says itself replaces it. The language is\n",
        "described in [Describe a provider](guide/own-provider.md).\n\n",
        "| preset | provider | signed | replay guard | success | retries |\n| --- | --- | --- | --- | --- | --- |\n",
    ));
    for preset in Preset::all() {
        let _ = writeln!(
            text,
            "| [`{0}`](#{0}) | {1} | {2} | {3} | {4} | {5} |",
            preset.name,
            preset.title,
            preset.covers.word(),
            if preset.replay_guard { "on" } else { "off" },
            preset.answer.status.unwrap_or(202),
            preset.retries.window,
        );
    }
    for preset in Preset::all() {
        text.push_str(&section(preset));
    }
    text
}

/// The lines about one provider, of which empty ones are left out.
fn section(preset: &Preset) -> String {
    let mut text = format!(
        "\n## {}\n\n{}. The signature covers {}.\n\n",
        preset.name,
        preset.title,
        preset.covers.word()
    );
    let lines = proof(preset)
        .into_iter()
        .chain(mapping(preset))
        .chain(delivery(preset));
    for (name, value) in lines {
        if !value.is_empty() && value != "`-`" {
            let _ = writeln!(text, "- {name}: {value}");
        }
    }
    text
}

type Line = (String, String);

fn proof(preset: &Preset) -> Vec<Line> {
    let mut lines = vec![("secret".to_owned(), preset.secret.clone())];
    for (name, rule) in &preset.settings {
        let kind = match (&rule.default, rule.optional) {
            (Some(default), _) if !default.is_empty() => format!(" (`{default}` by default)"),
            (Some(_), _) | (None, true) => " (optional)".to_owned(),
            (None, false) => String::new(),
        };
        lines.push((format!("setting `{name}`"), format!("{}{kind}", rule.about)));
    }
    let handshakes = preset
        .handshakes
        .iter()
        .map(|handshake| handshake.name.as_str());
    lines.extend([
        ("may change unseen".to_owned(), preset.uncovered.join("; ")),
        ("tolerance".to_owned(), seconds(preset.tolerance)),
        (
            "handshakes".to_owned(),
            handshakes.collect::<Vec<_>>().join(", "),
        ),
    ]);
    lines
}

fn mapping(preset: &Preset) -> [Line; 6] {
    let signed = if preset.id_signed {
        "signed"
    } else {
        "not signed"
    };
    let patterns = preset
        .batch
        .iter()
        .map(|pattern| format!("`{}`", pattern.as_str()));
    let volatile = preset.volatile.iter().map(|path| format!("`{path}`"));
    [
        (
            "event id".to_owned(),
            format!("{}, {signed}", code(&ids(preset))),
        ),
        (
            "event type".to_owned(),
            code(&places(&preset.map.event_type)),
        ),
        ("entity".to_owned(), code(&places(&preset.map.entity_id))),
        ("order".to_owned(), code(&order(preset))),
        ("batch".to_owned(), patterns.collect::<Vec<_>>().join(", ")),
        (
            "may differ between deliveries of one event".to_owned(),
            volatile.collect::<Vec<_>>().join(", "),
        ),
    ]
}

fn delivery(preset: &Preset) -> [Line; 6] {
    let retries = &preset.retries;
    let repeated = format!(
        "{}; window {}; signed time: {}",
        retries.schedule,
        retries.window,
        retries.timestamp.word()
    );
    [
        (
            "success".to_owned(),
            preset.answer.status.unwrap_or(202).to_string(),
        ),
        ("answer within".to_owned(), seconds(preset.answer.deadline)),
        ("retries".to_owned(), repeated),
        ("limits".to_owned(), preset.limits.join("; ")),
        ("seen in".to_owned(), preset.confirmed.join("; ")),
        ("unconfirmed".to_owned(), preset.unconfirmed.join("; ")),
    ]
}

fn seconds(span: Option<sekali_verify::Span>) -> String {
    span.map_or_else(String::new, |span| format!("{} s", span.0.as_secs()))
}

fn code(list: &str) -> String {
    let places: Vec<String> = list.split(", ").map(|place| format!("`{place}`")).collect();
    places.join(", ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_of_the_documentation_is_current() {
        let file = include_str!("../../../../docs/providers.md");
        assert_eq!(
            super::page().trim_end(),
            file.trim_end(),
            "run `sekali providers --markdown > docs/providers.md`"
        );
    }
}
