//! The providers that come with the crate, each a text file under `presets/`.
//!
//! A preset is data in the language of `docs/guide/own-provider.md`; no preset has code of its own. What
//! it must state, down to the test vectors that check it, is in its type: a file without it cannot be read.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::batch::Pattern;
use crate::handshake::Handshake;
use crate::json::Pointer;
use crate::map::Map;
use crate::place::{Place, Places};
use crate::scheme::{Condition, Coverage, Scheme};
use crate::settings::Settings;
use crate::sign::can_sign;
use crate::span::Span;
use crate::timestamp::Window;

mod files;
mod generic;

use files::FILES;

/// Everything that is known about a provider.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// The name by which it is configured.
    #[serde(skip)]
    pub name: &'static str,
    /// The provider's own name.
    pub title: String,
    /// Where its rules were seen.
    pub confirmed: Vec<String>,
    /// What rests on general knowledge only.
    pub unconfirmed: Vec<String>,
    /// What the signature covers.
    pub covers: Coverage,
    /// What may change without the signature showing it.
    #[serde(default)]
    pub uncovered: Vec<String>,
    /// Known limits of its ids, entities and order.
    pub limits: Vec<String>,
    /// Whether the event id is part of what is signed.
    pub id_signed: bool,
    /// Whether the replay guard is on.
    pub replay_guard: bool,
    /// What the operator puts into `secrets`.
    pub secret: String,
    /// How old a signed time may be.
    pub tolerance: Option<Span>,
    /// How far ahead a signed time may be.
    pub tolerance_future: Option<Span>,
    /// What a signed delivery that does not fit the mapping leads to.
    pub unusable: Unusable,
    /// Places in the body that may differ between deliveries of one event.
    pub volatile: Vec<Pointer>,
    /// Event types from the lowest to the highest rank at equal times.
    pub rank: Vec<String>,
    /// Where the elements of a batch stand.
    #[serde(default)]
    pub batch: Vec<Pattern>,
    /// What makes a delivery one that may be a batch.
    #[serde(default)]
    pub batch_when: Vec<Condition>,
    /// How it repeats deliveries.
    pub retries: Retries,
    /// The test vectors that check it.
    pub vectors: Vectors,
    /// The values that can or must be configured beside the secrets.
    #[serde(default)]
    pub settings: BTreeMap<String, SettingRule>,
    /// How it signs.
    #[serde(rename = "scheme")]
    pub schemes: Vec<Scheme>,
    /// What it asks beside sending events.
    #[serde(default, rename = "handshake")]
    pub handshakes: Vec<Handshake>,
    /// How its payload is read.
    pub map: Map,
    /// What it wants to hear.
    #[serde(default)]
    pub answer: AnswerRules,
}

/// What a signed delivery that does not fit the mapping leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unusable {
    /// It is answered 400.
    #[default]
    Refuse,
    /// It is accepted, and stands in the inbox as ignored or dead letter with the reason.
    Store,
}

/// How a provider repeats deliveries that were not answered with success.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retries {
    /// The delays, as far as they are known.
    pub schedule: String,
    /// For how long it goes on: a span, `none` or `unknown`.
    pub window: String,
    /// Whether a repetition has a new signed time.
    pub timestamp: RetryTimestamp,
}

/// Whether a repetition has a new signed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryTimestamp {
    /// It is signed anew.
    Fresh,
    /// It carries the time of the first try.
    Original,
    /// No time is signed.
    None,
    /// Nobody said.
    Unknown,
}

impl RetryTimestamp {
    /// Gives the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Original => "original",
            Self::None => "none is signed",
            Self::Unknown => "unknown",
        }
    }
}

/// The test vectors that check a preset.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vectors {
    /// The one that checks what is read out of an event.
    pub id: String,
    /// The one that must be refused.
    pub refusal: String,
}

/// A value that is configured beside the secrets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingRule {
    /// What it is.
    pub about: String,
    /// Whether it can be left out.
    #[serde(default)]
    pub optional: bool,
    /// Whether it is a secret, given as `env:NAME` or `file:PATH`.
    #[serde(default)]
    pub secret: bool,
    /// What it is where nothing is configured.
    pub default: Option<String>,
}

/// What a provider wants to hear.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerRules {
    /// The status code of success.
    pub status: Option<u16>,
    /// The body of success.
    pub body: Option<String>,
    /// Its media type.
    pub content_type: Option<String>,
    /// The status code for a known id with other content: that of success, or 409.
    pub inconsistent: Option<u16>,
    /// The status code for a missing or wrong signature.
    pub refused: Option<u16>,
    /// The body that goes with it.
    pub refused_body: Option<String>,
    /// The status code for a delivery that cannot be stored.
    pub malformed: Option<u16>,
    /// How long the provider waits.
    pub deadline: Option<Span>,
}

impl Preset {
    /// Finds a preset by its name.
    pub fn find(name: &str) -> Option<&'static Self> {
        let file = FILES.iter().find(|file| file.name == name)?;
        Some(file.read())
    }

    /// Lists the names of all presets, in alphabetical order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FILES.iter().map(|file| file.name)
    }

    /// Reads all presets.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        FILES.iter().map(files::File::read)
    }

    /// Gives the settings that have a value where nothing is configured.
    pub fn defaults(&self) -> Settings {
        let defaults = self.settings.iter();
        let with_default =
            defaults.filter_map(|(name, rule)| Some((name.clone(), rule.default.clone()?)));
        with_default.collect()
    }

    /// Gives the window that its signed times are held against; five minutes where it says nothing.
    pub fn window(&self) -> Window {
        const DEFAULT_MS: i64 = 300_000;
        let ms = |span: Span| i64::try_from(span.0.as_millis()).unwrap_or(i64::MAX);
        let past_ms = self.tolerance.map_or(DEFAULT_MS, ms);
        Window {
            past_ms,
            future_ms: self.tolerance_future.map_or(past_ms, ms),
        }
    }

    /// Tells whether the event id is part of what is signed, whichever scheme proves it.
    pub fn signs_ids(&self) -> bool {
        let ids = self
            .map
            .event_id
            .as_ref()
            .map_or(&[][..], |ids| ids.places());
        signs_places(&self.schemes, ids)
    }

    /// Tells whether a receiver's secret is enough to sign like the provider.
    pub fn can_sign(&self) -> bool {
        can_sign(&self.schemes)
    }
}

/// Tells whether the value that is read from these places is signed, whichever of the schemes proves it.
///
/// The hash of a body is not asked: where it stands in for an id there is nothing else.
pub fn signs_places(schemes: &[Scheme], places: &[Place]) -> bool {
    schemes.iter().all(|scheme| signs_in_order(scheme, places))
}

/// Later places are only read where the earlier ones are missing, which a signed header never is.
fn signs_in_order(scheme: &Scheme, places: &[Place]) -> bool {
    for (index, place) in places.iter().enumerate() {
        let leaves = Places(vec![place.clone()]);
        let is_signed = |leaf: &Place| match leaf {
            Place::Literal(_) => true,
            Place::HashBody => index > 0 || scheme.covers_whole_body(),
            leaf => scheme.signs_place(leaf),
        };
        match place {
            Place::Header(name) if scheme.needs_absent(name) => {}
            Place::Header(name) if scheme.signs_header(name) => return true,
            _ if leaves.all().all(is_signed) => {}
            _ => return false,
        }
    }
    true
}
