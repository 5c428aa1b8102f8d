// Express + PostgreSQL, the receiver that stores and nothing else.
//
// One row for each event, with the raw body, by one prepared `insert … on conflict do nothing` that commits by itself.
// 202 after the commit of a new event, 200 for one that is there already. It keeps no trace of duplicates or of refused
// requests, does not compare what two deliveries of one id say, and applies nothing.
import pg from 'pg';
import { serve } from './common.mjs';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: Number(process.env.POOL ?? 10) });

const INSERT = {
  name: 'insert',
  text: `insert into events (event_id, event_type, entity_id, source_version, body) values ($1, $2, $3, $4, $5)
    on conflict (event_id) do nothing`,
};

serve(async (req, res) => {
  const event = JSON.parse(req.body);
  const { entity_id: entity, source_version: version } = event.entity;
  const values = [event.event_id, event.event_type, entity, version, req.body];
  const { rowCount } = await pool.query({ ...INSERT, values });
  res.status(rowCount === 1 ? 202 : 200).json({ outcome: rowCount === 1 ? 'accepted' : 'duplicate' });
});
