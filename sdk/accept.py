"""Reads signed requests, one a line, and has each provider's own SDK verify them. `--tamper` changes a byte of each
body that was accepted, and demands that it is refused then."""

import json
import re
import sys
import urllib.parse
from types import SimpleNamespace

import razorpay
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from linebot.v3.webhook import SignatureValidator
from paddle_billing.Notifications import Secret, Verifier
from slack_sdk.signature import SignatureVerifier
from standardwebhooks.webhooks import Webhook as StandardWebhook
from stripe import Webhook as StripeWebhook
from svix.webhooks import Webhook as SvixWebhook
from twilio.request_validator import RequestValidator


class Form(dict):
    """A form whose names may repeat, with the method by which Twilio's SDK asks for all values."""

    def getlist(self, name):
        return self[name]


def twilio(r, h):
    form = Form(urllib.parse.parse_qs(r["body"], keep_blank_values=True))
    params = r["body"] if "bodySHA256=" in r["url"] else form
    return RequestValidator(r["secret"]).validate(r["url"], params, h["x-twilio-signature"])


def paddle(r, h):
    request = SimpleNamespace(headers={"Paddle-Signature": h["paddle-signature"]}, body=r["body"].encode())
    # Its 5 seconds are too few for two languages after one another on a busy machine.
    return Verifier(60).verify(request, Secret(r["secret"]))


def cloudevents(r, h):
    """No signature: that the SDK reads it as an event, and that the token is the one that was given."""
    event = from_http_event(HTTPMessage(h, r["body"].encode()))
    return bool(event.get_id()) and h["authorization"] == f"Bearer {r['secret']}"


# Every check is true, or false, or raises.
CHECKS = {
    "stripe": lambda r, h: StripeWebhook.construct_event(r["body"], h["stripe-signature"], r["secret"]) is not None,
    # It returns nothing, and raises where it does not fit.
    "svix": lambda r, h: SvixWebhook(r["secret"]).verify(r["body"], h) is None,
    "standard-webhooks": lambda r, h: StandardWebhook(r["secret"]).verify(r["body"], h) is not None,
    "twilio": twilio,
    "slack": lambda r, h: SignatureVerifier(r["secret"]).is_valid_request(r["body"], h),
    "razorpay": lambda r, h: razorpay.Client(auth=("x", "y")).utility.verify_webhook_signature(
        r["body"], h["x-razorpay-signature"], r["secret"]
    ),
    "line": lambda r, h: SignatureValidator(r["secret"]).validate(r["body"], h["x-line-signature"]),
    "paddle": paddle,
    "cloudevents": cloudevents,
}
ELSEWHERE = {"github"}  # checked by accept.mjs only
UNSIGNED = {"cloudevents"}  # no changed body is noticed


def accepted(request):
    headers = {name.lower(): value for name, value in request["headers"].items()}
    return CHECKS[request["preset"]](request, headers)


def tampered(request):
    body = re.sub("[0-9]", lambda digit: str((int(digit[0]) + 1) % 10), request["body"], count=1)
    if body == request["body"]:
        raise SystemExit(f"{request['id']} has no digit to change")
    return {**request, "body": body}


def judge(request):
    try:
        return bool(accepted(request)), None
    except Exception as problem:  # every SDK has its own
        return False, f"{type(problem).__name__}: {problem}"


def main(tampers):
    wanted = CHECKS.keys() - (UNSIGNED if tampers else set())
    missing = set(wanted)
    failed = False
    for line in sys.stdin:
        request = json.loads(line)
        preset = request["preset"]
        if preset in wanted:
            missing.discard(preset)
            taken, error = judge(request)
            failed |= not taken
            if tampers and not taken:
                error = f"refused before it was changed: {error}"
            if tampers and taken:
                taken, error = judge(tampered(request))
                failed |= taken
        else:
            is_known = preset in ELSEWHERE | UNSIGNED
            failed |= not is_known
            taken, error = None, "not checked here" if is_known else "no such check"
        print(json.dumps({"id": request["id"], "accepted": taken, "error": error}))
    if missing:
        print(f"accept.py: not run: {', '.join(sorted(missing))}", file=sys.stderr)
    sys.exit(1 if failed or missing else 0)


if __name__ == "__main__":
    main("--tamper" in sys.argv)
