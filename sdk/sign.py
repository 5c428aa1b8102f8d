"""Prints one signed request a line, signed by each provider's own SDK where it can sign, and else by hand and confirmed
by the SDK's verification. `--now SECONDS` pins the clock of schemes that sign a time."""

import base64
import datetime
import hashlib
import hmac
import json
import sys
import time
import urllib.parse
from importlib.metadata import version

from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent
from slack_sdk.signature import SignatureVerifier
from standardwebhooks.webhooks import Webhook as StandardWebhook
from stripe import WebhookSignature
from svix.webhooks import Webhook as SvixWebhook
from twilio.request_validator import RequestValidator

from accept import Form, accepted

CLOCK = int(time.time())
NOW = int(sys.argv[sys.argv.index("--now") + 1]) if "--now" in sys.argv else CLOCK
# In UTC: the SDK of the standard takes any other zone for UTC.
AT = datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc)
WHSEC = "whsec_" + base64.b64encode(b"fake-secret-for-tests-only-0002").decode()
# The text would change if it were parsed and printed again.
ODD = '"note": "små blå \\u00e5", "amount": 10.00'
FORM_TYPE = {"content-type": "application/x-www-form-urlencoded"}


def request(preset, sdk, secret, headers, body, **more):
    return {
        "id": f"{preset}-python", "preset": preset, "sdk": f"{sdk} {version(sdk)} (PyPI)", "secret": secret,
        "settings": {}, "method": "POST", "url": f"https://hooks.example.test/hooks/{preset}",
        "headers": {"content-type": "application/json", **headers}, "body": body, "now": NOW, **more,
    }  # fmt: skip


def digest(secret, text):
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()


def by_hand(make):
    """Where an SDK only verifies, its word is asked for with the real clock, since some look at theirs."""
    current = make(CLOCK)
    if not accepted(current):
        raise SystemExit(f"{current['id']} was made wrong")
    return make(NOW)


def stripe():
    secret = "whsec_fake_for_tests"
    body = f'{{"id": "evt_1SdkPython0000001", "object": "event", "type": "customer.updated", "created": {NOW}, "livemode": false, "pending_webhooks": 1, "data": {{"object": {{"id": "cus_SdkPython00001", "object": "customer", {ODD}}}}}}}'
    signature = WebhookSignature.generate_signature_header(body, secret, NOW)
    return request("stripe", "stripe", secret, {"stripe-signature": signature}, body)


def standard(preset, sdk, webhook, prefix):
    """Svix and the standard differ in the names of the headers only."""
    name = f"msg_{prefix}_python_1"
    body = f'{{"type": "user.created", "timestamp": "2026-01-01T00:00:00Z", "data": {{"id": "user_1", {ODD}}}}}'
    signature = webhook(WHSEC).sign(name, AT, body)
    headers = {f"{prefix}-id": name, f"{prefix}-timestamp": str(NOW), f"{prefix}-signature": signature}
    return request(preset, sdk, WHSEC, headers, body)


def twilio_form():
    secret = "fake-twilio-auth-token"
    # The SDK signs each value of a repeated parameter once, in order.
    form = Form(
        CallSid=["CA00000000000000000000000000000001"], CallStatus=["completed"], SequenceNumber=["2"],
        AccountSid=["AC00000000000000000000000000000001"], To=["+49 30 å&b 10.00"], Tag=["b", "a", "b"],
    )  # fmt: skip
    url = "https://hooks.example.test/hooks/twilio?x=1&y=%27"
    signature = RequestValidator(secret).compute_signature(url, form)
    headers = {**FORM_TYPE, "x-twilio-signature": signature}
    return request("twilio", "twilio", secret, headers, urllib.parse.urlencode(form, doseq=True), url=url)


def twilio_json():
    """A body that is no form is signed by its hash in the URL."""
    secret = "fake-twilio-auth-token"
    body = f'{{"AccountSid": "AC00000000000000000000000000000001", "EventType": "onMessageAdded", {ODD}}}'
    validator = RequestValidator(secret)
    url = f"https://hooks.example.test/hooks/twilio?bodySHA256={validator.compute_hash(body)}"
    headers = {"x-twilio-signature": validator.compute_signature(url, {})}
    return request("twilio", "twilio", secret, headers, body, url=url, id="twilio-json-python")


def slack():
    secret = "fake-slack-signing-secret"
    body = f'{{"type": "event_callback", "team_id": "T00000001", "event_id": "Ev00000001", "event_time": {NOW}, "event": {{"type": "message", "channel": "C00000001", "ts": "{NOW}.000100", "event_ts": "{NOW}.000100", {ODD}}}}}'
    signature = SignatureVerifier(secret).generate_signature(timestamp=str(NOW), body=body)
    headers = {"x-slack-request-timestamp": str(NOW), "x-slack-signature": signature}
    return request("slack", "slack-sdk", secret, headers, body)


def razorpay(now):
    secret = "fake-razorpay-secret"
    body = f'{{"entity": "event", "account_id": "acc_SdkPython00001", "event": "order.paid", "contains": ["order"], "payload": {{"order": {{"entity": {{"id": "order_SdkPython00001", "entity": "order", {ODD}}}}}}}, "created_at": {now}}}'
    headers = {"x-razorpay-event-id": "evt_SdkPython00001", "x-razorpay-signature": digest(secret, body).hex()}
    return request("razorpay", "razorpay", secret, headers, body)


def line(now):
    secret = "fake-line-channel-secret"
    body = f'{{"destination": "U00000000000000000000000000000001", "events": [{{"type": "follow", "webhookEventId": "01SDKPYTHON00000000000001", "timestamp": {now}000, "mode": "active", "deliveryContext": {{"isRedelivery": false}}, "source": {{"type": "user", "userId": "U00000000000000000000000000000002"}}, {ODD}}}]}}'
    headers = {"x-line-signature": base64.b64encode(digest(secret, body)).decode()}
    return request("line", "line-bot-sdk", secret, headers, body)


def paddle(now):
    secret = "pdl_ntfset_fake_for_tests"
    body = f'{{"event_id": "evt_01sdkpython00000000000001", "event_type": "customer.created", "occurred_at": "2026-01-01T00:00:00.000000Z", "notification_id": "ntf_01sdkpython00000000000001", "data": {{"id": "ctm_01sdkpython00000000000001", {ODD}}}}}'
    headers = {"paddle-signature": f"ts={now};h1={digest(secret, f'{now}:{body}').hex()}"}
    return request("paddle", "paddle-python-sdk", secret, headers, body)


def cloudevents(mode, to_message, data):
    secret = "fake-cloudevents-token"
    about = {
        "id": "python-1", "source": "/shops/b%C3%A5stad", "type": "com.example.order.paid", "subject": "ordre på 1",
        "sequence": "1", "time": AT, "datacontenttype": "application/json", "specversion": "1.0",
    }  # fmt: skip
    message = to_message(CloudEvent(about, data))
    headers = {**message.headers, "authorization": f"Bearer {secret}"}
    name = f"cloudevents-{mode}-python"
    return request("cloudevents", "cloudevents", secret, headers, message.body.decode(), id=name)


def all_requests():
    return [
        stripe(),
        standard("svix", "svix", SvixWebhook, "svix"),
        standard("standard-webhooks", "standardwebhooks", StandardWebhook, "webhook"),
        twilio_form(), twilio_json(), slack(), by_hand(razorpay), by_hand(line), by_hand(paddle),
        # Only text stays as it is: the SDK prints any other data anew, with 10.0 for 10.00.
        cloudevents("structured", to_structured_event, json.loads(f"{{{ODD}}}")),
        cloudevents("binary", to_binary_event, f"{{{ODD}}}"),
    ]  # fmt: skip


if __name__ == "__main__":
    for signed in all_requests():
        print(json.dumps(signed, ensure_ascii=False))
