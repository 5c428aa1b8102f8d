// Express + Redis + PostgreSQL, the receiver that applies an event before it answers.
//
// A lock for the event in Redis (SET NX PX, 15 s); then one transaction: the event's row with `on conflict do nothing`, the
// document where the event is newer, and one more in its counter where that changed a row; then the lock is released.
// 200 after the commit, 200 for an event that was applied before, 429 while another request holds its lock.
// It keeps no body, no trace of duplicates and no attempts; if the process dies, nobody tries again but the sender.
import pg from 'pg';
import { Redis } from 'ioredis';
import { serve } from './common.mjs';

const redis = new Redis(process.env.REDIS_URL);
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: Number(process.env.POOL ?? 10) });

const LOG = {
  name: 'log',
  text: `insert into processed_webhooks (event_id, entity_id, event_type) values ($1, $2, $3)
    on conflict (event_id) do nothing`,
};
const DOCUMENT = {
  name: 'document',
  text: `update documents set current_source_version = $2, summary = $3, updated_at = now()
    where entity_id = $1 and current_source_version < $2`,
};
const COUNTER = { name: 'counter', text: 'update counters set applied = applied + 1 where entity_id = $1' };

serve(async (req, res) => {
  const event = JSON.parse(req.body);
  const { entity_id: entity, source_version: version } = event.entity;
  const lock = `lock:webhook:${event.event_id}`;
  if (!(await redis.set(lock, 'processing', 'PX', 15000, 'NX'))) return res.status(429).json({ outcome: 'in_progress' });
  try {
    const isNew = await apply(event, entity, version);
    res.json({ outcome: isNew ? 'processed' : 'duplicate' });
  } finally {
    await redis.del(lock);
  }
});

async function apply(event, entity, version) {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const log = await client.query({ ...LOG, values: [event.event_id, entity, event.event_type] });
    if (log.rowCount === 1) {
      const document = await client.query({ ...DOCUMENT, values: [entity, version, event.data.summary] });
      if (document.rowCount === 1) await client.query({ ...COUNTER, values: [entity] });
    }
    await client.query('commit');
    return log.rowCount === 1;
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}
