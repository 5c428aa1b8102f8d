"""FastAPI + asyncpg, the receiver that stores and nothing else.

A request is proven by X-Webhook-Signature: v1=<hex HMAC-SHA256 over X-Webhook-Timestamp, a dot and the raw body>, compared in
constant time, with a timestamp at most five minutes away; else 401 (signature) or 400 (time). One row for each event, with
the raw body, by one prepared `insert … on conflict do nothing` that commits by itself. 202 after the commit of a new event,
200 for one that is there already. It keeps no trace of duplicates or of refused requests, does not compare what two
deliveries of one id say, and applies nothing.
"""

import hashlib
import hmac
import json
import os
import time
from contextlib import asynccontextmanager

import asyncpg
from fastapi import FastAPI, Request, Response

SECRET = os.environ["WEBHOOK_SECRET"].encode()
TOLERANCE_S = 300
INSERT = """insert into events (event_id, event_type, entity_id, source_version, body) values ($1, $2, $3, $4, $5)
    on conflict (event_id) do nothing"""


@asynccontextmanager
async def lifespan(app: FastAPI):
    size = int(os.environ.get("POOL", "10"))
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=size, max_size=size) as pool:
        app.state.pool = pool
        yield


app = FastAPI(lifespan=lifespan, openapi_url=None)


def proven(headers, body: bytes) -> int:
    """Returns the status to refuse with, or 0."""
    sent = headers.get("x-webhook-timestamp", "")
    right = hmac.new(SECRET, sent.encode() + b"." + body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(f"v1={right}".encode(), headers.get("x-webhook-signature", "").encode()):
        return 401
    return 0 if sent.isdigit() and abs(time.time() - int(sent)) <= TOLERANCE_S else 400


@app.post("/hooks/research")
async def receive(request: Request) -> Response:
    body = await request.body()
    if status := proven(request.headers, body):
        return Response(status_code=status)
    event = json.loads(body)
    entity = event["entity"]
    values = event["event_id"], event["event_type"], entity["entity_id"], entity["source_version"], body
    done = await app.state.pool.execute(INSERT, *values)
    is_new = done == "INSERT 0 1"
    outcome = b'{"outcome":"accepted"}' if is_new else b'{"outcome":"duplicate"}'
    return Response(outcome, status_code=202 if is_new else 200, media_type="application/json")
