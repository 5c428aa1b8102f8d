//! The whole story of an event, told to a person.

use clap::Args;
use sekali::Reason;
use sekali::store::{EventRow, Story, VariantRow};

use super::One;
use crate::cli::output::{or_dash, time, time_ns};
use crate::cli::{DONE, entities, output};

#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    one: One,
    /// Print the body, too
    #[arg(long)]
    body: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) async fn run(self) -> anyhow::Result<u8> {
        let (_, story) = self.one.find().await?;
        let body = story.body.as_deref().map(String::from_utf8_lossy);
        if self.json {
            let mut value = serde_json::to_value(&story)?;
            if let (true, Some(object)) = (self.body, value.as_object_mut()) {
                object.insert("body".into(), body.map(|body| body.into_owned()).into());
            }
            output::json(&value)?;
            return Ok(DONE);
        }
        tell(&story);
        if let (true, Some(body)) = (self.body, body) {
            output::line(&format!("\nBody\n{body}"));
        }
        Ok(DONE)
    }
}

/// Tells a story to a person.
fn tell(story: &Story) {
    tell_facts(&story.event, story.body.is_some());
    tell_deliveries(story);
    tell_attempts(story);
    if !story.variants.is_empty() {
        tell_variants(&story.variants);
    }
    if let Some(entity) = &story.entity {
        entities::tell(entity);
    }
}

fn tell_facts(event: &EventRow, has_body: bool) {
    let reason = event.reason.as_deref().and_then(Reason::from_code);
    let signature =
        event.signature_valid.map_or(
            "unsigned source",
            |valid| if valid { "valid" } else { "wrong" },
        );
    let gone = if has_body { "" } else { " (not kept any more)" };
    output::line(&format!(
        "Event {} (#{}) of source {}",
        event.event_id, event.seq, event.source
    ));
    let facts = [
        ("type", event.event_type.clone()),
        (
            "entity",
            format!("{} {}", event.entity_type, event.entity_id),
        ),
        ("version", or_dash(event.source_version)),
        ("occurred", or_dash(event.occurred_at.map(time_ns))),
        ("received", time(event.received_at)),
        ("finished", or_dash(event.processed_at.map(time))),
        ("signature", signature.to_owned()),
        ("content", or_dash(event.content_hash.as_deref())),
        ("comes from", or_dash(event.source_url.as_deref())),
        ("body", format!("sha256:{}{gone}", event.payload_hash)),
        (
            "status",
            format!(
                "{} {}",
                event.status,
                event.reason.as_deref().unwrap_or_default()
            ),
        ),
        ("because", reason.map_or("", Reason::sentence).to_owned()),
        ("error", or_dash(event.error_message.as_deref())),
        ("next try", or_dash(event.next_attempt_at.map(time))),
    ];
    for (name, value) in facts
        .into_iter()
        .filter(|(_, value)| !value.trim().is_empty() && value != "-")
    {
        output::line(&format!("  {name:<11} {}", value.trim()));
    }
}

fn tell_deliveries(story: &Story) {
    output::line("\nDeliveries");
    let rows = story.deliveries.iter().map(|delivery| {
        vec![
            time(delivery.received_at),
            delivery.outcome.clone(),
            or_dash(delivery.reason.as_deref()),
            delivery.http_status.to_string(),
            or_dash(delivery.remote_address.as_deref()),
            format!("{} µs", delivery.duration_us),
        ]
    });
    output::table(
        &["received", "outcome", "reason", "answer", "from", "took"],
        rows.collect(),
    );
}

fn tell_variants(variants: &[VariantRow]) {
    output::line("\nOther content under this id (kept as evidence, not applied)");
    let rows = variants.iter().map(|variant| {
        vec![
            variant.id.to_string(),
            format!("sha256:{}", variant.payload_hash),
            variant.seen.to_string(),
            time(variant.last_at),
            or_dash(variant.decision.as_deref()),
        ]
    });
    output::table(
        &["variant", "body", "seen", "last", "decision"],
        rows.collect(),
    );
}

fn tell_attempts(story: &Story) {
    output::line("\nAttempts");
    let rows = story.attempts.iter().map(|attempt| {
        let decisions = attempt
            .decisions
            .as_array()
            .into_iter()
            .flatten()
            .map(|decision| {
                let text = |name: &str| decision[name].as_str().unwrap_or_default().to_owned();
                format!(
                    "{}: {} {}",
                    text("effect"),
                    text("decision"),
                    text("reason")
                )
                .trim()
                .to_owned()
            });
        let decisions: Vec<_> = decisions.collect();
        let who = if attempt.attempt == 0 {
            "operator".to_owned()
        } else {
            attempt.attempt.to_string()
        };
        let why = attempt.message.clone().or(attempt.reason.clone());
        vec![
            time(attempt.started_at),
            who,
            attempt.status.clone(),
            or_dash(why),
            decisions.join("; "),
        ]
    });
    output::table(
        &["started", "attempt", "status", "why", "effects"],
        rows.collect(),
    );
}
