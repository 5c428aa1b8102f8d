//! What holds of a file of SQLite alone, which one process serves.

use sekali::store::Erase;
use sekali::{Store, StoreOptions};

use super::leases::claim_by_a_dead_worker;
use super::operators::conflict;
use super::support::{Rig, docs, sources, update};

#[tokio::test]
async fn the_process_that_starts_takes_leases_over_at_once() {
    let rig = Rig::start(&docs("unusable = \"store\"")).await;
    claim_by_a_dead_worker(&rig).await;
    let rig = rig
        .restart(sources(&docs("unusable = \"store\"")), &[])
        .await
        .unwrap();
    assert_eq!(rig.settled("e", "processed").await.attempts, 2);
}

#[tokio::test]
async fn only_one_process_serves_a_file_and_others_write_beside_it() {
    let rig = Rig::start(&docs("")).await;
    let open = |exclusive| {
        Store::open(StoreOptions {
            clock: rig.clock.clone(),
            exclusive,
            ..StoreOptions::serving(rig.engine.store().database().clone())
        })
    };
    assert!(conflict(open(true).await.map(drop)).contains("already served"));
    let seq = rig.accept("docs", update("e", "d", 1)).await;
    rig.drain().await;
    open(false)
        .await
        .unwrap()
        .write(Erase { seq })
        .await
        .unwrap();
    assert_eq!(rig.event("e").await.status, "erased");
}
