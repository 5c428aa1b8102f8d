"""Reads signed requests, one a line, and has each provider's own SDK verify them. `--tamper` changes a byte of each body
first and demands that all are refused."""

import json
import re
import sys
import urllib.parse

import razorpay
from linebot.v3.webhook import SignatureValidator
from paddle_billing.Notifications import Secret, Verifier
from slack_sdk.signature import SignatureVerifier
from standardwebhooks.webhooks import Webhook as StandardWebhook
from stripe import Webhook as StripeWebhook
from svix.webhooks import Webhook as SvixWebhook
from twilio.request_validator import RequestValidator


class Request:
    """What Paddle's verifier looks at."""

    def __init__(self, headers, body):
        self.headers = {"Paddle-Signature": headers["paddle-signature"]}
        self.body = body.encode()
        self.content = self.body
        self.data = self.body


def twilio(r, h):
    form = dict(urllib.parse.parse_qsl(r["body"], keep_blank_values=True))
    return RequestValidator(r["secret"]).validate(r["url"], form, h["x-twilio-signature"])


CHECKS = {
    "stripe": lambda r, h: StripeWebhook.construct_event(r["body"], h["stripe-signature"], r["secret"]) is not None,
    # It returns nothing, and raises where it does not fit.
    "svix": lambda r, h: SvixWebhook(r["secret"]).verify(r["body"], h) is None or True,
    "standard-webhooks": lambda r, h: StandardWebhook(r["secret"]).verify(r["body"], h) is not None,
    "twilio": twilio,
    "slack": lambda r, h: SignatureVerifier(r["secret"]).is_valid_request(r["body"], h),
    "razorpay": lambda r, h: razorpay.Client(auth=("x", "y")).utility.verify_webhook_signature(
        r["body"], h["x-razorpay-signature"], r["secret"]
    ),
    "line": lambda r, h: SignatureValidator(r["secret"]).validate(r["body"], h["x-line-signature"]),
    "paddle": lambda r, h: Verifier().verify(Request(h, r["body"]), Secret(r["secret"])),
}


def main():
    tampers = "--tamper" in sys.argv
    failed = seen = 0
    for line in sys.stdin:
        request = json.loads(line)
        check = CHECKS.get(request["preset"])
        if check is None:
            continue
        seen += 1
        headers = {name.lower(): value for name, value in request["headers"].items()}
        if tampers:
            request["body"] = re.sub("[0-9]", lambda digit: str((int(digit[0]) + 1) % 10), request["body"], count=1)
        outcome, error = False, None
        try:
            outcome = bool(check(request, headers))
        except Exception as problem:  # every SDK has its own
            error = f"{type(problem).__name__}: {problem}"
        failed += outcome == tampers
        print(json.dumps({"id": request["id"], "accepted": outcome, "error": error}))
    sys.exit(1 if failed or not seen else 0)


if __name__ == "__main__":
    main()
