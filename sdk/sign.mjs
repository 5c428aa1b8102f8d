// Prints one signed request a line, signed by each provider's own SDK where it can sign, and else by hand and
// confirmed by the SDK's verification. `--now SECONDS` pins the clock of schemes that sign a time.
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { sign as octokitSign } from "@octokit/webhooks-methods";
import { CloudEvent, HTTP } from "cloudevents";
import Stripe from "stripe";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import twilio from "twilio";
import { accepted } from "./accept.mjs";

const argument = process.argv.indexOf("--now");
const clock = Math.floor(Date.now() / 1000);
const now = argument > 0 ? Number(process.argv[argument + 1]) : clock;
if (!Number.isSafeInteger(now)) throw new Error("--now takes seconds");

const versions = JSON.parse(readFileSync(new URL("package.json", import.meta.url))).dependencies;
const whsec = "whsec_" + Buffer.from("fake-secret-for-tests-only-0001").toString("base64");
// The text would change if it were parsed and printed again.
const odd = '"note": "små blå \\u00e5", "amount": 10.00';
const form_type = { "content-type": "application/x-www-form-urlencoded" };

function request(preset, sdk, secret, headers, body, more = {}) {
  return {
    id: `${preset}-node`, preset, sdk: `${sdk} ${versions[sdk]} (npm)`, secret, settings: {}, method: "POST",
    url: `https://hooks.example.test/hooks/${preset}`,
    headers: { "content-type": "application/json", ...headers }, body, now, ...more,
  };
}

const hmac = (secret, text, encoding) => createHmac("sha256", secret).update(text).digest(encoding);

// Where an SDK only verifies, its word is asked for with the real clock, since some look at theirs.
async function byHand(make) {
  const current = make(clock);
  if (!(await accepted(current))) throw new Error(`${current.id} was made wrong`);
  return { ...make(now), now };
}

function stripe() {
  const secret = "whsec_fake_for_tests";
  const body = `{"id": "evt_1SdkNode000000001", "object": "event", "type": "customer.updated", "created": ${now}, "livemode": false, "pending_webhooks": 1, "data": {"object": {"id": "cus_SdkNode0000001", "object": "customer", ${odd}}}}`;
  const signature = Stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp: now });
  return request("stripe", "stripe", secret, { "stripe-signature": signature }, body);
}

// Svix and the standard differ in the names of the headers only.
function standard(preset, sdk, Webhook, prefix) {
  const id = `msg_${prefix}_node_1`;
  const body = `{"type": "user.created", "timestamp": "2026-01-01T00:00:00Z", "data": {"id": "user_1", ${odd}}}`;
  const signature = new Webhook(whsec).sign(id, new Date(now * 1000), body);
  return request(preset, sdk, whsec, { [`${prefix}-id`]: id, [`${prefix}-timestamp`]: String(now), [`${prefix}-signature`]: signature }, body);
}

async function github() {
  const secret = "fake-github-secret";
  const body = `{"action": "published", "release": {"id": 10001, "tag_name": "v1", "published_at": "2026-01-01T00:00:00Z", ${odd}}, "repository": {"id": 20001, "full_name": "example/shop"}}`;
  return request("github", "@octokit/webhooks-methods", secret, {
    "x-github-event": "release", "x-github-delivery": "00000000-0000-4000-8000-000000000001",
    "x-hub-signature-256": await octokitSign(secret, body),
  }, body);
}

function twilioForm() {
  const secret = "fake-twilio-auth-token";
  // The SDK signs each value of a repeated parameter once, in order.
  const form = {
    MessageSid: "SM00000000000000000000000000000001", MessageStatus: "delivered",
    AccountSid: "AC00000000000000000000000000000001", Body: "små blå & more=10.00", Tag: ["b", "a", "b"],
  };
  const pairs = Object.entries(form).flatMap(([name, values]) => [values].flat().map((value) => [name, value]));
  const url = "https://hooks.example.test/hooks/twilio?x=1&y=%20";
  const signature = twilio.getExpectedTwilioSignature(secret, url, form);
  return request("twilio", "twilio", secret, { ...form_type, "x-twilio-signature": signature }, String(new URLSearchParams(pairs)), { url });
}

// A body that is no form is signed by its hash in the URL.
function twilioJson() {
  const secret = "fake-twilio-auth-token";
  const body = `{"AccountSid": "AC00000000000000000000000000000001", "EventType": "onMessageAdded", ${odd}}`;
  const url = `https://hooks.example.test/hooks/twilio?bodySHA256=${twilio.getExpectedBodyHash(body)}`;
  const signature = twilio.getExpectedTwilioSignature(secret, url, {});
  return request("twilio", "twilio", secret, { "x-twilio-signature": signature }, body, { url, id: "twilio-json-node" });
}

function razorpay(time) {
  const secret = "fake-razorpay-secret";
  const body = `{"entity": "event", "account_id": "acc_SdkNode0000001", "event": "payment.captured", "contains": ["payment"], "payload": {"payment": {"entity": {"id": "pay_SdkNode0000001", "entity": "payment", ${odd}}}}, "created_at": ${time}}`;
  return request("razorpay", "razorpay", secret, {
    "x-razorpay-event-id": "evt_SdkNode0000001", "x-razorpay-signature": hmac(secret, body, "hex"),
  }, body);
}

function line(time) {
  const secret = "fake-line-channel-secret";
  const body = `{"destination": "U00000000000000000000000000000001", "events": [{"type": "message", "webhookEventId": "01SDKNODE0000000000000001", "timestamp": ${time}000, "mode": "active", "deliveryContext": {"isRedelivery": false}, "source": {"type": "user", "userId": "U00000000000000000000000000000002"}, "message": {"id": "1", "type": "text", "text": "små blå \\u00e5"}, "amount": 10.00}]}`;
  return request("line", "@line/bot-sdk", secret, { "x-line-signature": hmac(secret, body, "base64") }, body);
}

function paddle(time) {
  const secret = "pdl_ntfset_fake_for_tests";
  const body = `{"event_id": "evt_01sdknode0000000000000001", "event_type": "subscription.updated", "occurred_at": "2026-01-01T00:00:00.000000Z", "notification_id": "ntf_01sdknode0000000000000001", "data": {"id": "sub_01sdknode0000000000000001", ${odd}}}`;
  const signature = `ts=${time};h1=${hmac(secret, `${time}:${body}`, "hex")}`;
  return request("paddle", "@paddle/paddle-node-sdk", secret, { "paddle-signature": signature }, body);
}

function cloudevents(mode) {
  const secret = "fake-cloudevents-token";
  const about = {
    id: "node-1", source: "/shops/b%C3%A5stad", type: "com.example.order.paid", subject: "order-1", sequence: "1",
    time: new Date(now * 1000).toISOString(), datacontenttype: "application/json",
  };
  // Only bytes stay as they are: the SDK prints any other data anew, with 10 for 10.00.
  const data = mode === "binary" ? Buffer.from(`{${odd}}`) : JSON.parse(`{${odd}}`);
  const { headers, body } = HTTP[mode](new CloudEvent({ ...about, data }));
  return request("cloudevents", "cloudevents", secret, { ...headers, authorization: `Bearer ${secret}` }, String(body), { id: `cloudevents-${mode}-node` });
}

const all = [
  stripe(), standard("svix", "svix", SvixWebhook, "svix"), standard("standard-webhooks", "standardwebhooks", StandardWebhook, "webhook"),
  await github(), twilioForm(), twilioJson(), await byHand(razorpay), await byHand(line), await byHand(paddle),
  cloudevents("structured"), cloudevents("binary"),
];
for (const signed of all) console.log(JSON.stringify(signed));
