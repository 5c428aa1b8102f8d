//! What has to hold at the end of a round.

use std::collections::BTreeMap;

use super::fleet::Fleet;
use super::provider::Provider;

/// Events that were not applied exactly once, as far as the receiver's own rows tell.
const ATTEMPTS: &str = "select i.event_id from webhook_inbox i left join webhook_attempts a on a.inbox_seq = i.seq \
    group by i.event_id having sum(case when a.status = 'processed' then 1 else 0 end) <> 1 \
    or sum(case when a.status = 'dead_letter' then 1 else 0 end) <> 0";

/// Events whose acceptance was not noted exactly once.
const ACCEPTED: &str = "select i.event_id from webhook_inbox i left join webhook_deliveries d on d.inbox_seq = i.seq \
    group by i.event_id having sum(case when d.outcome = 'accepted' then 1 else 0 end) <> 1";

/// Orders that were written with an older version after a newer one.
const BACKWARDS: &str = "select later.entity_id from order_writes earlier join order_writes later \
    on later.entity_id = earlier.entity_id and later.id > earlier.id and later.version <= earlier.version";

/// Entities whose position is not that of their order.
const POSITIONS: &str = "select o.entity_id from orders o left join webhook_entities e on e.entity_id = o.entity_id \
    where e.version is null or e.version <> o.version or e.last_event_id <> o.last_event_id";

/// By how much the clocks differ by which deliveries were received in a round, in milliseconds.
const CLOCKS: &str =
    "select max(received_at) - min(received_at) from webhook_inbox where event_id like ";

/// Checks that every event of a round, all of which were answered with success, was applied exactly once.
pub(super) fn holds(fleet: &Fleet, provider: &Provider) {
    let database = &fleet.database;
    let lines = |sql: &str| database.lines(sql);
    let inbox = pairs(
        fleet,
        "select event_id, processing_status from webhook_inbox",
    );
    let runs = pairs(fleet, "select event_id, runs from runs");
    for event in provider.sent() {
        let id = &event.id;
        let status = inbox.get(id).map(String::as_str);
        assert_eq!(status, Some("processed"), "{id} was answered with success");
        assert_eq!(runs.get(id).map(String::as_str), Some("1"), "runs of {id}");
    }
    let twice: Vec<_> = runs.iter().filter(|(_, runs)| *runs != "1").collect();
    assert!(twice.is_empty(), "applied more than once: {twice:?}");
    let [stored, ran] = [&inbox, &runs].map(|map| map.keys().collect::<Vec<_>>());
    assert_eq!(stored, ran, "what is in the inbox was applied");
    let orders = pairs(fleet, "select entity_id, version from orders");
    for (entity, version) in provider.newest() {
        assert_eq!(orders[entity], version.to_string(), "{entity}");
    }
    for (sql, what) in [
        (ATTEMPTS, "not one attempt that applied it"),
        (ACCEPTED, "not accepted once"),
        (POSITIONS, "the entity stands elsewhere than its order"),
    ] {
        assert_eq!(lines(sql), [""; 0], "{what}");
    }
    if database.numbers_rise() {
        assert_eq!(
            lines(BACKWARDS),
            [""; 0],
            "an older version after a newer one"
        );
    }
    let first = provider.sent().next().unwrap().id.split('-').next();
    let clocks = database.count(&format!("{CLOCKS}'{}-%'", first.unwrap()));
    assert!(
        clocks > 19 * 60 * 1000,
        "the clocks differ by {clocks} ms only"
    );
}

fn pairs(fleet: &Fleet, sql: &str) -> BTreeMap<String, String> {
    let pair = |line: String| {
        let (key, value) = line.split_once(['|', '\t']).expect("two columns");
        (key.to_owned(), value.to_owned())
    };
    fleet.database.lines(sql).into_iter().map(pair).collect()
}
