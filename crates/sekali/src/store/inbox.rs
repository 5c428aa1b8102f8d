//! Admission into the inbox: every delivery of a batch becomes an event, a duplicate, a variant or a replay.
//!
//! The order of the questions matters. The unique key of (source, scope, event_id) is asked first, by inserting: a known
//! id is a duplicate or a variant, never a replay. Only an id that is new can meet the replay guard. All rows of a batch
//! are written in the order of their keys, so that two nodes cannot block each other; of twins in one batch the one that
//! arrived first is stored.

use super::deliveries::insert_delivery;
use super::positions::note_position;
use super::variants::keep_variant;
use super::{Conn, Transaction, Value};
use crate::error::{Result, Step as _};
use crate::event::{Delivery, Entry, Fingerprint, NewEvent, Receipt};
use crate::reason::{Outcome, Reason, Status};

/// Admits a batch of deliveries in one transaction.
pub(crate) struct Admit {
    /// The deliveries, in the order of their arrival.
    pub(crate) deliveries: std::sync::Arc<[Delivery]>,
}

impl Transaction for Admit {
    type Output = Vec<Receipt>;
    const STEP: &'static str = "admit deliveries";

    async fn run(self, conn: &mut Conn<'_>) -> Result<Vec<Receipt>> {
        let mut order: Vec<usize> = (0..self.deliveries.len()).collect();
        order.sort_by_key(|index| key(&self.deliveries[*index]));
        let mut receipts = vec![None; self.deliveries.len()];
        for index in order {
            let delivery = &self.deliveries[index];
            let receipt = admit(conn, delivery).await?;
            insert_delivery(conn, delivery, &receipt).await?;
            receipts[index] = Some(receipt);
        }
        Ok(receipts.into_iter().flatten().collect())
    }
}

fn key(delivery: &Delivery) -> (&str, &str, &str) {
    (
        &delivery.source.id,
        &delivery.event.scope,
        &delivery.event.event_id,
    )
}

async fn admit(conn: &mut Conn<'_>, delivery: &Delivery) -> Result<Receipt> {
    if let Some(reason) = delivery.only_if_known {
        return admit_late_retry(conn, delivery, reason).await;
    }
    if let Some(seq) = insert_event(conn, delivery).await? {
        insert_payload(conn, seq, &delivery.event).await?;
        if let (Entry::Settled(..), Some(entity)) = (delivery.event.entry, delivery.entity()) {
            // No worker will look at it, and the versions behind it must not wait for it.
            note_position(conn, &entity, delivery.event.position.version, seq).await?;
        }
        let reason = match delivery.event.entry {
            Entry::Settled(_, reason) => Some(reason),
            Entry::HeldUntil(_) => Some(Reason::WaitingForTime),
            Entry::Due => None,
        };
        return Ok(Receipt {
            outcome: Outcome::Accepted,
            reason,
            seq: Some(seq),
        });
    }
    if let Some(known) = find_by_id(conn, delivery).await? {
        return admit_known(conn, delivery, &known).await;
    }
    let seq = find_by_replay_key(conn, delivery).await?;
    if let Some(seq) = seq {
        keep_variant(conn, seq, delivery).await?;
    }
    Ok(Receipt {
        outcome: Outcome::Replay,
        reason: None,
        seq,
    })
}

/// What the inbox knows about an event id.
struct Known {
    seq: i64,
    payload_hash: Option<Vec<u8>>,
    fingerprint: Option<Vec<u8>>,
}

async fn admit_known(conn: &mut Conn<'_>, delivery: &Delivery, known: &Known) -> Result<Receipt> {
    let seq = Some(known.seq);
    if is_same_content(conn, delivery, known).await? {
        return Ok(Receipt {
            outcome: Outcome::Duplicate,
            reason: None,
            seq,
        });
    }
    keep_variant(conn, known.seq, delivery).await?;
    Ok(Receipt {
        outcome: Outcome::InconsistentDuplicate,
        reason: None,
        seq,
    })
}

/// Lets a delivery outside of the time window through only as the duplicate of what is known.
async fn admit_late_retry(
    conn: &mut Conn<'_>,
    delivery: &Delivery,
    reason: Reason,
) -> Result<Receipt> {
    let known = find_by_id(conn, delivery).await?;
    let known = known
        .filter(|known| known.payload_hash.as_deref() == Some(&delivery.event.payload_hash[..]));
    Ok(match known {
        Some(known) => Receipt {
            outcome: Outcome::Duplicate,
            reason: Some(reason),
            seq: Some(known.seq),
        },
        None => Receipt {
            outcome: Outcome::Timestamp,
            reason: Some(reason),
            seq: None,
        },
    })
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

const INSERT_EVENT: &str = "insert into webhook_inbox (source, scope, event_id, event_type, entity_type, entity_id, \
    source_version, occurred_at, type_rank, source_url, content_hash, producer, delivered_at, payload_hash, fingerprint, \
    replay_key, signature_valid, received_at, processing_status, status_reason, http_status, next_attempt_at, \
    processed_at, traceparent) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
    on conflict do nothing";

async fn insert_event(conn: &mut Conn<'_>, delivery: &Delivery) -> Result<Option<i64>> {
    let (event, received_at) = (&delivery.event, delivery.received_at);
    let (status, reason, due_at, done_at) = match event.entry {
        Entry::Due => (Status::Received, None, Some(received_at), None),
        Entry::HeldUntil(at) => (
            Status::Received,
            Some(Reason::WaitingForTime),
            Some(at),
            None,
        ),
        Entry::Settled(status, reason) => (status, Some(reason), None, Some(received_at)),
    };
    let provenance = &event.provenance;
    let values: [Value<'_>; 24] = [
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
        Value::Bytes(&event.fingerprint.to_bytes()),
        event.replay_key.as_ref().map(|key| &key[..]).into(),
        event.signature_valid.map(i64::from).into(),
        received_at.into(),
        Value::Text(status.code()),
        reason.map(Reason::code).into(),
        i64::from(delivery.source.http_status(Outcome::Accepted)).into(),
        due_at.into(),
        done_at.into(),
        event.traceparent.as_deref().into(),
    ];
    conn.insert(INSERT_EVENT, &values)
        .await
        .step("store an event")
}

const INSERT_PAYLOAD: &str = "insert into webhook_payloads (seq, headers, body) values (?, ?, ?)";

async fn insert_payload(conn: &mut Conn<'_>, seq: i64, event: &NewEvent) -> Result<()> {
    let values = [
        seq.into(),
        Value::Text(&event.headers),
        Value::Bytes(&event.body),
    ];
    conn.execute(INSERT_PAYLOAD, &values)
        .await
        .step("store a payload")
        .map(drop)
}

const FIND_BY_ID: &str = "select seq, payload_hash, fingerprint from webhook_inbox where source = ? and scope = ? and event_id = ?";

async fn find_by_id(conn: &mut Conn<'_>, delivery: &Delivery) -> Result<Option<Known>> {
    let (source, scope, event_id) = key(delivery);
    let values = [source.into(), scope.into(), event_id.into()];
    let known = conn.fetch_one(FIND_BY_ID, &values, |row| {
        Ok(Known {
            seq: row.int(0)?,
            payload_hash: row.opt_bytes(1)?,
            fingerprint: row.opt_bytes(2)?,
        })
    });
    known.await.step("find an event by its id")
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
