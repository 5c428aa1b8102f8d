//! Admission: every delivery is stored once or refused with its reason, and a row can only fail itself.

use sekali::event::{Receipt, Rejected};
use sekali::{Error, Limits, Outcome, Reason, Result};
use tokio::task::JoinSet;

use super::support::{Options, Rig, START_MS, docs, source, sources, update};

/// Admits bodies that all wait while the writer is held, in their order.
async fn admit_together(rig: &Rig, bodies: Vec<String>) -> Vec<Result<Receipt>> {
    let held = rig.hold_writer().await;
    let mut admitted = JoinSet::new();
    for (index, body) in bodies.into_iter().enumerate() {
        let delivery = rig.delivery("docs", rig.sign("docs", body)).unwrap();
        let admission = rig.engine.admission().clone();
        admitted.spawn(async move { (index, admission.admit(delivery).await) });
    }
    held.release().await;
    let mut receipts = admitted.join_all().await;
    receipts.sort_by_key(|(index, _)| *index);
    receipts.into_iter().map(|(_, receipt)| receipt).collect()
}

fn outcomes(receipts: &[Result<Receipt>], wanted: Outcome) -> usize {
    let is_wanted =
        |receipt: &&Result<Receipt>| matches!(receipt, Ok(receipt) if receipt.outcome == wanted);
    receipts.iter().filter(is_wanted).count()
}

#[tokio::test]
async fn of_fifty_twins_in_one_batch_exactly_one_is_accepted() {
    let rig = Rig::start(&docs("")).await;
    let receipts = admit_together(&rig, vec![update("e-1", "d", 1); 50]).await;
    assert!(
        rig.batches.largest() >= 49,
        "the twins did not share a batch"
    );
    assert_eq!(outcomes(&receipts, Outcome::Accepted), 1);
    assert_eq!(outcomes(&receipts, Outcome::Duplicate), 49);
    let seqs: Vec<_> = receipts
        .iter()
        .map(|receipt| receipt.as_ref().unwrap().seq)
        .collect();
    assert!(seqs.iter().all(|seq| *seq == seqs[0] && seq.is_some()));
    rig.drain().await;
    assert_eq!(rig.column("select event from writes").await, "e-1");
    assert_eq!(
        rig.column("select count(*) from webhook_deliveries").await,
        "50"
    );
}

#[tokio::test]
async fn a_row_that_the_database_refuses_fails_alone() {
    let rig = Rig::start(&docs("")).await;
    rig.script(
        "create trigger refuses before insert on webhook_inbox when new.event_id = 'bad' begin \
         select raise(abort, 'refused by the test'); end",
    )
    .await
    .unwrap();
    let mut bodies: Vec<_> = (0..20).map(|n| update(&format!("e-{n}"), "d", n)).collect();
    bodies.insert(10, update("bad", "d", 99));
    let receipts = admit_together(&rig, bodies).await;
    assert_eq!(outcomes(&receipts, Outcome::Accepted), 20);
    assert!(
        matches!(&receipts[10], Err(Error::Store { .. })),
        "{:?}",
        receipts[10]
    );
    rig.script("drop trigger refuses").await.unwrap();
    assert_eq!(
        rig.send("docs", update("bad", "d", 99)).await,
        Outcome::Accepted
    );
    rig.drain().await;
    assert_eq!(rig.column("select event from docs").await, "bad");
}

#[tokio::test]
async fn an_id_counts_within_its_source_and_scope() {
    let both = format!("{}{}", docs(""), source("other", ""));
    let rig = Rig::start(&both).await;
    let tenant = |tenant: &str| {
        format!(
            r#"{{"id":"e-1","type":"doc.updated","entity":"d","version":1,"tenant":"{tenant}"}}"#
        )
    };
    assert_eq!(
        rig.send("docs", update("e-1", "d", 1)).await,
        Outcome::Accepted
    );
    assert_eq!(
        rig.send("other", update("e-1", "d", 1)).await,
        Outcome::Accepted
    );
    assert_eq!(rig.send("docs", tenant("a")).await, Outcome::Accepted);
    assert_eq!(rig.send("docs", tenant("b")).await, Outcome::Accepted);
    assert_eq!(rig.send("docs", tenant("b")).await, Outcome::Duplicate);
    let ids = "select count(*) from webhook_inbox where event_id = 'e-1'";
    assert_eq!(rig.column(ids).await, "4");
}

#[tokio::test]
async fn ids_are_compared_as_bytes() {
    let rig = Rig::start(&docs("")).await;
    for id in [
        "evt",
        "EVT",
        "Evt",
        "\u{e9}vt",
        "e\u{301}vt",
        "evt.",
        "\u{fb01}",
        "fi",
    ] {
        assert_eq!(
            rig.send("docs", update(id, "d", 1)).await,
            Outcome::Accepted,
            "{id}"
        );
        assert_eq!(
            rig.send("docs", update(id, "d", 1)).await,
            Outcome::Duplicate,
            "{id}"
        );
    }
}

#[tokio::test]
async fn rejected_deliveries_have_a_bound_and_are_counted_past_it() {
    let limits = Limits {
        rejected_rows_per_minute: 5,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let rig = Rig::with(sources(&docs("")), options).await;
    for number in 0..40 {
        rig.engine.admission().reject(Rejected {
            source: "docs".into(),
            received_at: START_MS + number,
            outcome: Outcome::Signature,
            reason: Reason::SignatureWrong,
            http_status: 401,
            payload_hash: None,
            signature_valid: Some(false),
            remote_address: None,
            duration_us: 1,
        });
    }
    let rig = rig.restart(sources(&docs("")), &[]).await.unwrap();
    let rows =
        "select count(*), max(outcome), max(reason), max(http_status) from webhook_deliveries";
    assert_eq!(
        rig.query(rows).await.concat(),
        ["5", "rejected_signature", "signature_wrong", "401"]
    );
    let counts = "select minute, source, outcome, count from webhook_rejections";
    let minute = (START_MS / 60_000).to_string();
    assert_eq!(
        rig.query(counts).await.concat(),
        [minute.as_str(), "docs", "rejected_signature", "35"]
    );
}
