//! Admission into the inbox: every delivery of a batch becomes an event, a duplicate, a variant or a replay.
//!
//! The order of the questions matters. The unique key of (source, scope, event_id) is asked first, by inserting: a known
//! id is a duplicate or a variant, never a replay. Only an id that is new can meet the replay guard. All rows of a batch
//! are written in the order of their keys, so that two nodes cannot block each other; of twins in one batch the one that
//! arrived first is stored.

use std::collections::HashMap;
use std::time::Duration;

use super::deliveries::insert_deliveries;
use super::positions::note_positions;
use super::rows::{Insert, Known as OnKnown, Rows, Select};
use super::variants::keep_variant;
use super::{Conn, Kind, Transaction, Value};
use crate::error::{Error, Result, Step as _};
use crate::event::{Delivery, Entry, Fingerprint, Receipt};
use crate::reason::{Outcome, Reason, Status};

/// Admits a batch of deliveries in one transaction.
pub(crate) struct Admit {
    /// The deliveries, in the order of their arrival.
    pub(crate) deliveries: std::sync::Arc<[Delivery]>,
}

/// What an event is known by.
type Key<'d> = (&'d str, &'d str, &'d str);

impl Transaction for Admit {
    type Output = Vec<Receipt>;
    const STEP: &'static str = "admit deliveries";

    fn within(&self) -> Duration {
        Duration::from_secs(8)
    }

    async fn run(&self, conn: &mut Conn<'_>) -> Result<Vec<Receipt>> {
        // By the database's clock, since a node whose own is ahead would hold its events back.
        let now = conn.now_ms().await.step(Self::STEP)?;
        let all = &self.deliveries[..];
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|index| key(&all[*index]));
        let mut firsts = order.clone();
        firsts.retain(|index| all[*index].only_if_known.is_none());
        firsts.dedup_by_key(|index| key(&all[*index]));
        let events: Vec<&Delivery> = firsts.iter().map(|index| &all[*index]).collect();
        let seqs = insert_events(conn, &events, now).await?;
        let new: Vec<(i64, usize)> = seqs
            .into_iter()
            .zip(firsts)
            .filter_map(|(seq, index)| Some((seq?, index)))
            .collect();
        let stored: Vec<(i64, &Delivery)> = new
            .iter()
            .map(|(seq, index)| (*seq, &all[*index]))
            .collect();
        insert_payloads(conn, &stored).await?;
        note_settled(conn, &stored).await?;
        let new: HashMap<Key<'_>, (i64, usize)> = new
            .into_iter()
            .map(|(seq, index)| (key(&all[index]), (seq, index)))
            .collect();
        let is_old = |index: &&usize| !new.contains_key(&key(&all[**index]));
        let known = find_known(
            conn,
            order.iter().filter(is_old).map(|index| key(&all[*index])),
        )
        .await?;
        let mut receipts = vec![None; all.len()];
        for index in order {
            let delivery = &all[index];
            let receipt = match new.get(&key(delivery)) {
                Some((seq, first)) if *first == index => accepted(*seq, delivery),
                // Of twins in one batch the second meets the first.
                Some((seq, first)) => {
                    meet(conn, delivery, Some(&Known::of(*seq, &all[*first]))).await?
                }
                None => meet(conn, delivery, known.get(&key(delivery))).await?,
            };
            receipts[index] = Some(receipt);
        }
        let receipts: Vec<Receipt> = receipts.into_iter().flatten().collect();
        insert_deliveries(conn, all.iter().zip(&receipts)).await?;
        Ok(receipts)
    }
}

fn key(delivery: &Delivery) -> Key<'_> {
    (
        &delivery.source.id,
        &delivery.event.scope,
        &delivery.event.event_id,
    )
}

fn accepted(seq: i64, delivery: &Delivery) -> Receipt {
    let reason = match delivery.event.entry {
        Entry::Settled(_, reason) => Some(reason),
        Entry::HeldUntil(_) => Some(Reason::WaitingForTime),
        Entry::Due => None,
    };
    Receipt {
        outcome: Outcome::Accepted,
        reason,
        seq: Some(seq),
    }
}

/// What the inbox knows about an event id.
struct Known {
    seq: i64,
    payload_hash: Option<Vec<u8>>,
    fingerprint: Option<Vec<u8>>,
}

impl Known {
    fn of(seq: i64, delivery: &Delivery) -> Self {
        let event = &delivery.event;
        Self {
            seq,
            payload_hash: Some(event.payload_hash.to_vec()),
            fingerprint: Some(event.fingerprint.to_bytes().to_vec()),
        }
    }
}

/// Says what becomes of a delivery that brought no new event.
async fn meet(conn: &mut Conn<'_>, delivery: &Delivery, known: Option<&Known>) -> Result<Receipt> {
    match (known, delivery.only_if_known) {
        (known, Some(reason)) => Ok(late_retry(delivery, known, reason)),
        (Some(known), None) => admit_known(conn, delivery, known).await,
        (None, None) => admit_replay(conn, delivery).await,
    }
}

async fn admit_known(conn: &mut Conn<'_>, delivery: &Delivery, known: &Known) -> Result<Receipt> {
    let is_same = is_same_content(conn, delivery, known).await?;
    if !is_same {
        keep_variant(conn, known.seq, delivery).await?;
    }
    let outcome = match is_same {
        true => Outcome::Duplicate,
        false => Outcome::InconsistentDuplicate,
    };
    Ok(Receipt {
        outcome,
        reason: None,
        seq: Some(known.seq),
    })
}

async fn admit_replay(conn: &mut Conn<'_>, delivery: &Delivery) -> Result<Receipt> {
    // What was met a moment ago and is gone now was pruned: whoever sends again finds the place free.
    let seq = find_by_replay_key(conn, delivery).await?;
    let seq = seq.ok_or(Error::Busy { queue: "database" })?;
    keep_variant(conn, seq, delivery).await?;
    Ok(Receipt {
        outcome: Outcome::Replay,
        reason: None,
        seq: Some(seq),
    })
}

/// Lets a delivery outside of the time window through only as the duplicate of what is known.
fn late_retry(delivery: &Delivery, known: Option<&Known>, reason: Reason) -> Receipt {
    let known = known
        .filter(|known| known.payload_hash.as_deref() == Some(&delivery.event.payload_hash[..]));
    Receipt {
        outcome: match known {
            Some(_) => Outcome::Duplicate,
            None => Outcome::Timestamp,
        },
        reason: Some(reason),
        seq: known.map(|known| known.seq),
    }
}

async fn is_same_content(conn: &mut Conn<'_>, delivery: &Delivery, known: &Known) -> Result<bool> {
    let event = &delivery.event;
    if known.payload_hash.as_deref() == Some(&event.payload_hash[..]) {
        return Ok(true);
    }
    let Some(stored) = known
        .fingerprint
        .as_deref()
        .and_then(Fingerprint::from_bytes)
    else {
        return Ok(false);
    };
    if stored.revision == event.fingerprint.revision {
        return Ok(stored == event.fingerprint);
    }
    // The list of volatile paths changed since: the stored body is asked again, if it is still there.
    let Some(body) = read_body(conn, known.seq).await? else {
        return Ok(false);
    };
    let hash = known
        .payload_hash
        .as_deref()
        .and_then(|hash| hash.try_into().ok())
        .unwrap_or_default();
    Ok(delivery
        .source
        .mapping
        .fingerprinter
        .matches_body(event.fingerprint, &body, hash))
}

static EVENTS: Insert = Insert::new(
    "webhook_inbox",
    &[
        ("source", Kind::Key),
        ("scope", Kind::Key),
        ("event_id", Kind::Key),
        ("event_type", Kind::Key),
        ("entity_type", Kind::Key),
        ("entity_id", Kind::Key),
        ("source_version", Kind::Int),
        ("occurred_at", Kind::Int),
        ("type_rank", Kind::Int),
        ("source_url", Kind::Text),
        ("content_hash", Kind::Key),
        ("producer", Kind::Key),
        ("delivered_at", Kind::Key),
        ("payload_hash", Kind::Bytes),
        ("fingerprint", Kind::Bytes),
        ("replay_key", Kind::Bytes),
        ("signature_valid", Kind::Int),
        ("received_at", Kind::Int),
        ("processing_status", Kind::Key),
        ("status_reason", Kind::Key),
        ("http_status", Kind::Int),
        ("next_attempt_at", Kind::Int),
        ("processed_at", Kind::Int),
        ("traceparent", Kind::Key),
        ("lease_token", Kind::Key),
    ],
    OnKnown::Stays,
)
.returning("seq, source, scope, event_id")
.marked_by("lease_token");

/// Inserts events and returns the number of each that is new.
async fn insert_events(
    conn: &mut Conn<'_>,
    deliveries: &[&Delivery],
    now_ms: i64,
) -> Result<Vec<Option<i64>>> {
    const STEP: &str = "store events";
    // Where the database does not say which rows are new, they are known by a mark; a claim replaces it.
    let mark = (!conn.names_new_rows()).then(|| format!("new-{:032x}", fastrand::u128(..)));
    let mark = mark.as_deref();
    let fingerprints: Vec<_> = deliveries
        .iter()
        .map(|delivery| delivery.event.fingerprint.to_bytes())
        .collect();
    let mut rows = Rows::with_capacity(25, deliveries.len());
    for (delivery, fingerprint) in deliveries.iter().zip(&fingerprints) {
        rows.push(event_row(delivery, fingerprint, mark, now_ms));
    }
    conn.insert_new(&EVENTS, 3, &rows).await.step(STEP)
}

fn event_row<'r>(
    delivery: &'r Delivery,
    fingerprint: &'r [u8],
    mark: Option<&'r str>,
    now_ms: i64,
) -> [Value<'r>; 25] {
    let (event, received_at) = (&delivery.event, delivery.received_at);
    let (status, reason, due_at, done_at) = match event.entry {
        Entry::Due => (Status::Received, None, Some(now_ms), None),
        Entry::HeldUntil(at) => (
            Status::Received,
            Some(Reason::WaitingForTime),
            Some(at),
            None,
        ),
        Entry::Settled(status, reason) => (status, Some(reason), None, Some(now_ms)),
    };
    let provenance = &event.provenance;
    [
        Value::Text(&delivery.source.id),
        Value::Text(&event.scope),
        Value::Text(&event.event_id),
        Value::Text(&event.event_type),
        Value::Text(&event.entity_type),
        Value::Text(&event.entity_id),
        event.position.version.into(),
        event.position.occurred_at.into(),
        event.position.rank.into(),
        provenance.source_url.as_deref().into(),
        provenance.content_hash.as_deref().into(),
        provenance.producer.as_deref().into(),
        provenance.delivered_at.as_deref().into(),
        Value::Bytes(&event.payload_hash),
        Value::Bytes(fingerprint),
        event.replay_key.as_ref().map(|key| &key[..]).into(),
        event.signature_valid.map(i64::from).into(),
        received_at.into(),
        Value::Text(status.code()),
        reason.map(Reason::code).into(),
        i64::from(delivery.source.http_status(Outcome::Accepted)).into(),
        due_at.into(),
        done_at.into(),
        event.traceparent.as_deref().into(),
        mark.into(),
    ]
}

static PAYLOADS: Insert = Insert::new(
    "webhook_payloads",
    &[
        ("seq", Kind::Int),
        ("headers", Kind::Text),
        ("body", Kind::Bytes),
    ],
    OnKnown::Fails,
);

async fn insert_payloads(conn: &mut Conn<'_>, stored: &[(i64, &Delivery)]) -> Result<()> {
    let mut rows = Rows::with_capacity(3, stored.len());
    for (seq, delivery) in stored {
        let event = &delivery.event;
        let (headers, body) = (Value::Text(&event.headers), Value::Bytes(&event.body));
        rows.push([(*seq).into(), headers, body]);
    }
    conn.insert_all(&PAYLOADS, &rows)
        .await
        .step("store payloads")
        .map(drop)
}

/// Notes the positions of events that no worker will look at: the versions behind them must not wait for them.
async fn note_settled(conn: &mut Conn<'_>, stored: &[(i64, &Delivery)]) -> Result<()> {
    let settled = stored.iter().filter_map(|(seq, delivery)| {
        let is_settled = matches!(delivery.event.entry, Entry::Settled(..));
        let entity = delivery.entity().filter(|_| is_settled)?;
        Some((entity, delivery.event.position.version, *seq))
    });
    let settled: Vec<_> = settled.collect();
    let positions = settled.iter();
    note_positions(
        conn,
        positions.map(|(key, version, seq)| (key, *version, *seq)),
    )
    .await
}

static BY_ID: Select = Select::new(
    "seq, payload_hash, fingerprint",
    "webhook_inbox",
    "source = {0} and scope = {1} and event_id = {2}",
    &[Kind::Key, Kind::Key, Kind::Key],
);

/// Finds the events that deliveries without a new one are about.
async fn find_known<'d>(
    conn: &mut Conn<'_>,
    keys: impl Iterator<Item = Key<'d>>,
) -> Result<HashMap<Key<'d>, Known>> {
    let mut keys: Vec<Key<'d>> = keys.collect();
    keys.dedup();
    let mut rows = Rows::with_capacity(3, keys.len());
    for (source, scope, event_id) in &keys {
        rows.push([(*source).into(), (*scope).into(), (*event_id).into()]);
    }
    let found = conn.select_all(&BY_ID, &rows, |index, row| {
        let known = Known {
            seq: row.int(0)?,
            payload_hash: row.opt_bytes(1)?,
            fingerprint: row.opt_bytes(2)?,
        };
        Ok((keys[index], known))
    });
    let found = found.await.step("find events by their ids")?;
    Ok(found.into_iter().collect())
}

const FIND_BY_REPLAY_KEY: &str =
    "select seq from webhook_inbox where source = ? and replay_key = ?";

async fn find_by_replay_key(conn: &mut Conn<'_>, delivery: &Delivery) -> Result<Option<i64>> {
    let key = delivery.event.replay_key.as_ref().map(|key| &key[..]);
    let values = [Value::Text(&delivery.source.id), key.into()];
    conn.fetch_one(FIND_BY_REPLAY_KEY, &values, |row| row.int(0))
        .await
        .step("find an event by its signed bytes")
}

const READ_BODY: &str = "select body from webhook_payloads where seq = ?";

pub(super) async fn read_body(conn: &mut Conn<'_>, seq: i64) -> Result<Option<Vec<u8>>> {
    let body = conn
        .fetch_one(READ_BODY, &[seq.into()], |row| row.opt_bytes(0))
        .await;
    body.step("read a payload").map(Option::flatten)
}
