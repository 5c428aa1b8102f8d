// Reads signed requests, one a line, and has each provider's own SDK verify them. `--tamper` changes a byte of each
// body first and demands that all are refused.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { validateSignature } from "@line/bot-sdk";
import { verify as octokitVerify } from "@octokit/webhooks-methods";
import { Paddle } from "@paddle/paddle-node-sdk";
import { HTTP } from "cloudevents";
import Stripe from "stripe";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";

const require = createRequire(import.meta.url);
const twilio = require("twilio");
const { validateWebhookSignature } = require("razorpay/dist/utils/razorpay-utils");

const checks = {
  stripe: (r, h) => !!Stripe.webhooks.constructEvent(r.body, h["stripe-signature"], r.secret),
  svix: (r, h) => !!new SvixWebhook(r.secret).verify(r.body, h),
  "standard-webhooks": (r, h) => !!new StandardWebhook(r.secret).verify(r.body, h),
  github: (r, h) => octokitVerify(r.secret, r.body, h["x-hub-signature-256"]),
  twilio: (r, h) => twilio.validateRequest(r.secret, h["x-twilio-signature"], r.url, Object.fromEntries(new URLSearchParams(r.body))),
  razorpay: (r, h) => validateWebhookSignature(r.body, h["x-razorpay-signature"], r.secret),
  line: (r, h) => validateSignature(r.body, r.secret, h["x-line-signature"]),
  paddle: (r, h) => new Paddle("fake-api-key").webhooks.isSignatureValid(r.body, r.secret, h["paddle-signature"]),
  // No signature: that the SDK reads it as an event, and that the token is the one that was given.
  cloudevents: (r, h) => !!HTTP.toEvent({ headers: h, body: r.body }) && h.authorization === `Bearer ${r.secret}`,
};

export async function accepted(request) {
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value]));
  const check = checks[request.preset];
  return check ? check(request, headers) : undefined;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const tampers = process.argv.includes("--tamper");
  let failed = 0;
  let seen = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    if (tampers && request.preset === "cloudevents") continue;
    if (tampers) request.body = request.body.replace(/[0-9]/, (digit) => String((Number(digit) + 1) % 10));
    let outcome = false;
    let error;
    try {
      outcome = await accepted(request);
    } catch (problem) {
      error = String(problem.message ?? problem);
    }
    if (outcome === undefined) continue;
    seen += 1;
    const is_right = !!outcome !== tampers;
    failed += is_right ? 0 : 1;
    console.log(JSON.stringify({ id: request.id, accepted: !!outcome, error }));
  }
  if (failed > 0 || seen === 0) process.exit(1);
}
