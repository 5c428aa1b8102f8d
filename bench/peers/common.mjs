// What both Express handlers share: proving a request, and serving from as many processes as they are told.
//
// A request is proven by X-Webhook-Signature: v1=<hex HMAC-SHA256 over X-Webhook-Timestamp, a dot and the raw body>, compared
// in constant time, with a timestamp at most five minutes away. Anything else is answered 401 (signature) or 400 (time).
import cluster from 'node:cluster';
import crypto from 'node:crypto';
import express from 'express';

const SECRET = process.env.WEBHOOK_SECRET;
const WORKERS = Number(process.env.WORKERS ?? 1);
const TOLERANCE_S = 300;

export function prove(req, res, next) {
  const time = req.headers['x-webhook-timestamp'] ?? '';
  const [, given] = /^v1=([0-9a-f]{64})$/.exec(req.headers['x-webhook-signature'] ?? '') ?? [];
  const right = crypto.createHmac('sha256', SECRET).update(`${time}.`).update(req.body).digest();
  if (!given || !crypto.timingSafeEqual(right, Buffer.from(given, 'hex'))) return res.status(401).send('wrong signature');
  if (!(Math.abs(Date.now() / 1000 - Number(time)) <= TOLERANCE_S)) return res.status(400).send('wrong time');
  next();
}

export function serve(handle) {
  if (cluster.isPrimary && WORKERS > 1) {
    for (let worker = 0; worker < WORKERS; worker++) cluster.fork();
    return;
  }
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.post('/hooks/research', express.raw({ type: () => true, limit: '1mb' }), prove, handle);
  app.listen(Number(process.env.PORT), '127.0.0.1');
}
