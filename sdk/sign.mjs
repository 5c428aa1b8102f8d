// Prints one signed request a line, signed by each provider's own SDK where it can sign, and else by hand and
// confirmed by the SDK's verification. `--now SECONDS` pins the clock of schemes that sign a time.
import { createHmac } from "node:crypto";
import { createRequire } from "node:module";
import { sign as octokitSign } from "@octokit/webhooks-methods";
import { CloudEvent, HTTP } from "cloudevents";
import Stripe from "stripe";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { accepted } from "./accept.mjs";

const require = createRequire(import.meta.url);
const twilio = require("twilio");

const argument = process.argv.indexOf("--now");
const now = argument > 0 ? Number(process.argv[argument + 1]) : Math.floor(Date.now() / 1000);
// The text would change if it were parsed and printed again.
const odd = '"note": "små blå \\u00e5", "amount": 10.00';
const whsec = "whsec_" + Buffer.from("fake-secret-for-tests-only-0001").toString("base64");
const hmac = (secret, text, encoding) => createHmac("sha256", secret).update(text).digest(encoding);

function request(preset, secret, headers, body, more = {}) {
  return {
    id: `${preset}-node`, preset, secret, settings: {}, method: "POST",
    url: `https://hooks.example.test/hooks/${preset}`,
    headers: { "content-type": "application/json", ...headers }, body, now, ...more,
  };
}

async function all() {
  const stripe = `{"id": "evt_sdk_1", "object": "event", "type": "customer.updated", "created": ${now}, "data": {"object": {"id": "cus_1", "object": "customer", ${odd}}}}`;
  const signature = Stripe.webhooks.generateTestHeaderString({ payload: stripe, secret: "whsec_fake_for_tests", timestamp: now });
  const message = `{"type": "user.created", "data": {"id": "user_1", ${odd}}}`;
  const at = new Date(now * 1000);
  const push = `{"action": "published", "release": {"id": 1, "published_at": "2026-01-01T00:00:00Z"}, ${odd}}`;
  const form = { MessageSid: "SM1", MessageStatus: "delivered", AccountSid: "AC1", Body: "små blå & more=1" };
  const twilioUrl = "https://hooks.example.test/hooks/twilio?x=1&y=%20";
  const razorpay = `{"entity": "event", "event": "payment.captured", "contains": ["payment"], "payload": {"payment": {"entity": {"id": "pay_1", ${odd}}}}, "created_at": ${now}}`;
  const line = `{"destination": "U0", "events": [{"type": "message", "webhookEventId": "01SDK", "timestamp": ${now}000, "mode": "active", "source": {"type": "user", "userId": "U1"}, ${odd}}]}`;
  const paddle = `{"event_id": "evt_sdk_2", "event_type": "subscription.updated", "occurred_at": "2026-01-01T00:00:00.000000Z", "notification_id": "ntf_1", "data": {"id": "sub_1", ${odd}}}`;
  const event = new CloudEvent({ id: "1", source: "/sdk/a%20b", type: "com.example.made", time: at.toISOString(), data: { a: 1 } });
  const structured = HTTP.structured(event);
  const binary = HTTP.binary(event);
  const bearer = { authorization: "Bearer fake-cloudevents-token" };
  return [
    request("stripe", "whsec_fake_for_tests", { "stripe-signature": signature }, stripe),
    request("svix", whsec, {
      "svix-id": "msg_1", "svix-timestamp": String(now), "svix-signature": new SvixWebhook(whsec).sign("msg_1", at, message),
    }, message),
    request("standard-webhooks", whsec, {
      "webhook-id": "msg_2", "webhook-timestamp": String(now), "webhook-signature": new StandardWebhook(whsec).sign("msg_2", at, message),
    }, message),
    request("github", "fake-github-secret", {
      "x-github-event": "release", "x-github-delivery": "00000000-0000-4000-8000-000000000001",
      "x-hub-signature-256": await octokitSign("fake-github-secret", push),
    }, push),
    request("twilio", "fake-twilio-auth-token", {
      "content-type": "application/x-www-form-urlencoded",
      "x-twilio-signature": twilio.getExpectedTwilioSignature("fake-twilio-auth-token", twilioUrl, form),
    }, new URLSearchParams(form).toString(), { url: twilioUrl }),
    request("razorpay", "fake-razorpay-secret", {
      "x-razorpay-event-id": "evt_sdk_3", "x-razorpay-signature": hmac("fake-razorpay-secret", razorpay, "hex"),
    }, razorpay),
    request("line", "fake-line-secret", { "x-line-signature": hmac("fake-line-secret", line, "base64") }, line),
    request("paddle", "pdl_ntfset_fake", {
      "paddle-signature": `ts=${now};h1=${hmac("pdl_ntfset_fake", `${now}:${paddle}`, "hex")}`,
    }, paddle),
    request("cloudevents", "fake-cloudevents-token", { ...structured.headers, ...bearer }, structured.body, { id: "cloudevents-structured-node" }),
    request("cloudevents", "fake-cloudevents-token", { ...binary.headers, ...bearer }, binary.body, { id: "cloudevents-binary-node" }),
  ];
}

for (const signed of await all()) {
  // What was made by hand has to convince the SDK; a pinned clock would make it too old for those that look at theirs.
  if (["razorpay", "line"].includes(signed.preset) && !(await accepted(signed))) {
    throw new Error(`${signed.id} was made wrong`);
  }
  console.log(JSON.stringify(signed));
}
