//! What holds at every moment, as queries for what breaks it: each sees one state of the database.

/// Queries that find nothing, and what it would mean if they did.
pub(super) const INVARIANTS: &[(&str, &str)] = &[
    (
        "an event has other than one body, and was not erased",
        "select i.event_id from webhook_inbox i left join webhook_payloads p on p.seq = i.seq where p.seq is null",
    ),
    (
        "an event was accepted other than once",
        "select i.event_id from webhook_inbox i left join webhook_deliveries d \
         on d.inbox_seq = i.seq and d.outcome = 'accepted' group by i.seq, i.event_id having count(d.id) <> 1",
    ),
    (
        "an event was applied more than once",
        "select i.event_id from webhook_inbox i join webhook_attempts a on a.inbox_seq = i.seq and a.status = 'processed' \
         group by i.seq, i.event_id having count(*) > 1",
    ),
    (
        "the user's table was written more than once for an event",
        "select event from writes group by event having count(*) > 1",
    ),
    (
        "an event is processed without the attempt that did it, or the other way round",
        "select i.event_id from webhook_inbox i left join webhook_attempts a \
         on a.inbox_seq = i.seq and a.status = 'processed' group by i.seq, i.event_id, i.processing_status \
         having (i.processing_status = 'processed' and count(a.id) = 0) \
         or (i.processing_status <> 'processed' and count(a.id) > 0)",
    ),
    (
        "a finished event is still due or leased, or a leased one has no token",
        "select event_id from webhook_inbox \
         where (processing_status in ('processed', 'ignored_out_of_order', 'dead_letter') and \
         (next_attempt_at is not null or lease_until is not null or processed_at is null)) \
         or (processing_status = 'processing' and (lease_token is null or lease_until is null)) \
         or (processing_status in ('received', 'failed') and (next_attempt_at is null or lease_until is not null))",
    ),
    (
        "the user's row is not that of the event that its entity stands at",
        "select d.entity from docs d left join webhook_entities e on e.entity_id = d.entity \
         where e.last_event_id is null or e.last_event_id <> d.event or e.deleted <> 0",
    ),
    (
        "an entity stands at an update without its row",
        "select e.entity_id from webhook_entities e left join docs d on d.entity = e.entity_id \
         where e.last_event_id is not null and e.deleted = 0 and d.entity is null",
    ),
    (
        "an entity stands below an event that was applied to it",
        "select i.event_id from webhook_inbox i join webhook_entities e on e.entity_id = i.entity_id \
         where i.processing_status = 'processed' and (e.version is null or e.version < i.source_version)",
    ),
    (
        "an event was ignored as too old by an entity that stands below it",
        "select i.event_id from webhook_inbox i join webhook_entities e on e.entity_id = i.entity_id \
         where i.processing_status = 'ignored_out_of_order' and e.version < i.source_version",
    ),
    (
        "an entity stands at an event that was not applied",
        "select e.entity_id from webhook_entities e left join webhook_inbox i on i.event_id = e.last_event_id \
         where e.last_event_id is not null and (i.seq is null or i.processing_status <> 'processed')",
    ),
    (
        "two attempts at an event have one number",
        "select inbox_seq from webhook_attempts where attempt > 0 group by inbox_seq, attempt having count(*) > 1",
    ),
    (
        "an event has an attempt above those that are counted",
        "select i.event_id from webhook_inbox i join webhook_attempts a on a.inbox_seq = i.seq where a.attempt > i.attempts",
    ),
    (
        "other content was answered as such and is not kept",
        "select d.inbox_seq from webhook_deliveries d left join webhook_variants v on v.inbox_seq = d.inbox_seq \
         where d.outcome = 'rejected_inconsistent_duplicate' and v.id is null",
    ),
    (
        "a version of an entity was looked at and is not noted",
        "select i.event_id from webhook_inbox i left join webhook_positions p on p.seq = i.seq \
         where i.processing_status in ('processed', 'ignored_out_of_order') and p.seq is null",
    ),
];
