// Reads signed requests, one a line, and has each provider's own SDK verify them. `--tamper` changes a byte of each
// body that was accepted, and demands that it is refused then.
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { validateSignature } from "@line/bot-sdk";
import { verify as octokitVerify } from "@octokit/webhooks-methods";
import { Paddle, WebhooksValidator } from "@paddle/paddle-node-sdk";
import { HTTP } from "cloudevents";
import Razorpay from "razorpay";
import Stripe from "stripe";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import twilio from "twilio";

// Its 5 seconds are too few for two languages after one another on a busy machine.
WebhooksValidator.MAX_VALID_TIME_DIFFERENCE = 60;

// Every check is true, or false, or throws.
const checks = {
  stripe: (r, h) => !!Stripe.webhooks.constructEvent(r.body, h["stripe-signature"], r.secret),
  svix: (r, h) => !!new SvixWebhook(r.secret).verify(r.body, h),
  "standard-webhooks": (r, h) => !!new StandardWebhook(r.secret).verify(r.body, h),
  github: (r, h) => octokitVerify(r.secret, r.body, h["x-hub-signature-256"]),
  twilio: (r, h) => r.url.includes("bodySHA256=")
    ? twilio.validateRequestWithBody(r.secret, h["x-twilio-signature"], r.url, r.body)
    : twilio.validateRequest(r.secret, h["x-twilio-signature"], r.url, form(r.body)),
  razorpay: (r, h) => Razorpay.validateWebhookSignature(r.body, h["x-razorpay-signature"], r.secret),
  line: (r, h) => validateSignature(r.body, r.secret, h["x-line-signature"]),
  paddle: (r, h) => new Paddle("fake-api-key").webhooks.isSignatureValid(r.body, r.secret, h["paddle-signature"]),
  // No signature: that the SDK reads it as an event, and that the token is the one that was given.
  cloudevents: (r, h) => HTTP.toEvent({ headers: h, body: r.body }).validate() && h.authorization === `Bearer ${r.secret}`,
};
const elsewhere = ["slack"]; // checked by accept.py only
const unsigned = ["cloudevents"]; // no changed body is noticed

function form(body) {
  const pairs = new URLSearchParams(body);
  return Object.fromEntries([...new Set(pairs.keys())].map((name) => [name, pairs.getAll(name)]));
}

export async function accepted(request) {
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value]));
  return checks[request.preset](request, headers);
}

function tampered(request) {
  const body = request.body.replace(/[0-9]/, (digit) => String((Number(digit) + 1) % 10));
  if (body === request.body) throw new Error(`${request.id} has no digit to change`);
  return { ...request, body };
}

async function judge(request) {
  try {
    return [await accepted(request), null];
  } catch (problem) {
    return [false, String(problem.message ?? problem).split("\n")[0]];
  }
}

async function main(tampers) {
  const wanted = Object.keys(checks).filter((preset) => !tampers || !unsigned.includes(preset));
  const missing = new Set(wanted);
  let failed = false;
  for await (const text of createInterface({ input: process.stdin })) {
    const request = JSON.parse(text);
    const { id, preset } = request;
    if (!wanted.includes(preset)) {
      const known = elsewhere.includes(preset) || unsigned.includes(preset);
      failed ||= !known;
      console.log(JSON.stringify({ id, accepted: null, error: known ? "not checked here" : "no such check" }));
      continue;
    }
    missing.delete(preset);
    let [taken, error] = await judge(request);
    failed ||= !taken;
    if (tampers && !taken) error = `refused before it was changed: ${error}`;
    if (tampers && taken) {
      [taken, error] = await judge(tampered(request));
      failed ||= taken;
    }
    console.log(JSON.stringify({ id, accepted: taken, error }));
  }
  if (missing.size > 0) console.error(`accept.mjs: not run: ${[...missing].join(", ")}`);
  process.exitCode = failed || missing.size > 0 ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.includes("--tamper"));
