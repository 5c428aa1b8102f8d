"""Prints one signed request a line, signed by each provider's own SDK where it can sign. `--now SECONDS` pins the clock."""

import base64
import datetime
import hashlib
import hmac
import json
import sys
import time
import urllib.parse

from slack_sdk.signature import SignatureVerifier
from standardwebhooks.webhooks import Webhook as StandardWebhook
from stripe import WebhookSignature
from svix.webhooks import Webhook as SvixWebhook
from twilio.request_validator import RequestValidator

NOW = int(sys.argv[sys.argv.index("--now") + 1]) if "--now" in sys.argv else int(time.time())
# The text would change if it were parsed and printed again.
ODD = '"note": "små blå \\u00e5", "amount": 10.00'
WHSEC = "whsec_" + base64.b64encode(b"fake-secret-for-tests-only-0002").decode()


def request(preset, secret, headers, body, **more):
    url = f"https://hooks.example.test/hooks/{preset}"
    headers = {"content-type": "application/json", **headers}
    base = {"id": f"{preset}-python", "preset": preset, "secret": secret, "settings": {}, "method": "POST", "url": url}
    return {**base, "headers": headers, "body": body, "now": NOW, **more}


def by_hand(secret, text, encode):
    return encode(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest())


def b64(digest):
    return base64.b64encode(digest).decode()


def all_requests():
    at = datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc)
    stripe = f'{{"id": "evt_py_1", "type": "customer.updated", "created": {NOW}, "data": {{"object": {{"id": "cus_1", {ODD}}}}}}}'
    v1 = WebhookSignature._compute_signature(f"{NOW}.{stripe}", "whsec_fake_for_tests")
    yield request("stripe", "whsec_fake_for_tests", {"stripe-signature": f"t={NOW},v1={v1}"}, stripe)
    message = f'{{"type": "user.created", "data": {{"id": "user_1", {ODD}}}}}'
    signed = SvixWebhook(WHSEC).sign("msg_1", at, message)
    yield request("svix", WHSEC, {"svix-id": "msg_1", "svix-timestamp": str(NOW), "svix-signature": signed}, message)
    signed = StandardWebhook(WHSEC).sign("msg_2", at, message)
    headers = {"webhook-id": "msg_2", "webhook-timestamp": str(NOW), "webhook-signature": signed}
    yield request("standard-webhooks", WHSEC, headers, message)
    form = {"CallSid": "CA1", "CallStatus": "completed", "SequenceNumber": "2", "To": "+49 30 å&b"}
    url = "https://hooks.example.test/hooks/twilio?x=1&y=%27"
    signed = RequestValidator("fake-twilio-auth-token").compute_signature(url, form)
    headers = {"content-type": "application/x-www-form-urlencoded", "x-twilio-signature": signed}
    yield request("twilio", "fake-twilio-auth-token", headers, urllib.parse.urlencode(form), url=url)
    slack = f'{{"type": "event_callback", "event_id": "Ev1", "event_time": {NOW}, "event": {{"type": "message", "channel": "C1", "ts": "{NOW}.000100", "event_ts": "{NOW}.000100"}}, {ODD}}}'
    signed = SignatureVerifier("fake-slack-secret").generate_signature(timestamp=str(NOW), body=slack)
    yield request("slack", "fake-slack-secret", {"x-slack-request-timestamp": str(NOW), "x-slack-signature": signed}, slack)
    razorpay = f'{{"event": "order.paid", "contains": ["order"], "payload": {{"order": {{"entity": {{"id": "order_1", {ODD}}}}}}}, "created_at": {NOW}}}'
    signed = by_hand("fake-razorpay-secret", razorpay, bytes.hex)
    yield request("razorpay", "fake-razorpay-secret", {"x-razorpay-event-id": "evt_py_3", "x-razorpay-signature": signed}, razorpay)
    line = f'{{"destination": "U0", "events": [{{"type": "follow", "webhookEventId": "01PY", "timestamp": {NOW}000, "source": {{"type": "user", "userId": "U1"}}, {ODD}}}]}}'
    yield request("line", "fake-line-secret", {"x-line-signature": by_hand("fake-line-secret", line, b64)}, line)
    paddle = f'{{"event_id": "evt_py_2", "event_type": "customer.created", "occurred_at": "2026-01-01T00:00:00Z", "data": {{"id": "ctm_1", {ODD}}}}}'
    signed = by_hand("pdl_ntfset_fake", f"{NOW}:{paddle}", bytes.hex)
    yield request("paddle", "pdl_ntfset_fake", {"paddle-signature": f"ts={NOW};h1={signed}"}, paddle)


if __name__ == "__main__":
    for signed_request in all_requests():
        print(json.dumps(signed_request, ensure_ascii=False))
