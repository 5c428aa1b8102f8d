//! An inbox with many events in it already, written by SQL: without payloads, as after their retention; half of the ids rise
//! and half are random.

use rusqlite::Connection;

use crate::Result;
use crate::servers::Place;

/// Fills the file of SQLite.
pub(crate) fn sqlite(path: &std::path::Path, keys: u64) -> Result<()> {
    let db = Connection::open(path)?;
    db.execute_batch(
        "pragma journal_mode = wal; pragma synchronous = off; pragma cache_size = -1000000;",
    )?;
    let sql = "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?1)
        insert into webhook_inbox (source, scope, event_id, event_type, entity_type, entity_id, source_version, occurred_at,
            type_rank, payload_hash, fingerprint, signature_valid, received_at, processed_at, processing_status, attempts)
        select 'research', '', case i % 2 when 0 then printf('evt_%s', lower(hex(randomblob(12)))) else printf('evs_%020d', i) end,
            'research.document.updated', 'research_document', printf('doc_%06d', i % 10000), -i, 1756116930000000000, 0,
            randomblob(32), randomblob(36), 1, ?2, ?2, 'processed', 1 from n";
    // Received now: what is older than its retention would be removed meanwhile.
    db.execute(sql, [keys as i64, sekali::Clock::System.now_ms()])?;
    db.execute_batch(
        "insert into webhook_positions (entity_id, entity_type, source, scope, source_version, seq)
            select entity_id, entity_type, source, scope, source_version, seq from webhook_inbox order by 1, 2, 3, 4, 5, 6;
        pragma wal_checkpoint(truncate)",
    )?;
    // What was written without waiting for the disk must not be waited for by the first deliveries.
    std::fs::File::open(path)?.sync_all()?;
    Ok(())
}

/// Fills a database of PostgreSQL.
pub(crate) fn postgres(place: &Place, keys: u64) {
    let now = sekali::Clock::System.now_ms();
    let (digest, longer) = (
        "decode(md5(i::text) || md5((-i)::text), 'hex')",
        "'\\x00000000'::bytea",
    );
    place.sql(&format!(
        "set synchronous_commit = off;
        insert into webhook_inbox (source, scope, event_id, event_type, entity_type, entity_id, source_version, occurred_at,
            type_rank, payload_hash, fingerprint, signature_valid, received_at, processed_at, processing_status, attempts)
        select 'research', '', case i % 2 when 0 then 'evt_' || left(md5(i::text), 24) else 'evs_' || lpad(i::text, 20, '0') end,
            'research.document.updated', 'research_document', 'doc_' || lpad((i % 10000)::text, 6, '0'), -i,
            1756116930000000000, 0, {digest}, {longer} || {digest}, 1, {now}, {now}, 'processed', 1
        from generate_series(1, {keys}) i;
        insert into webhook_positions (entity_id, entity_type, source, scope, source_version, seq)
            select entity_id, entity_type, source, scope, source_version, seq from webhook_inbox order by 1, 2, 3, 4, 5, 6"
    ));
    place.sql("vacuum analyze");
    place.settle();
}
