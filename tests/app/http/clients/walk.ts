// The walk of a partner with the generated types; the compiler checks it before it runs.

import createClient from "openapi-fetch";
import type { components, paths } from "./carrier-links";
import { connect, everyTransaction, keepingToken, repeating, type Send } from "./recipes.ts";

declare const process: { env: Record<string, string> };
type Client = ReturnType<typeof connect>;
type Plan = components["schemas"]["Plan"];

const { URL: url = "", CLIENT_ID: id = "", CLIENT_SECRET: secret = "" } = process.env;
const JOB_MS_MAX = 60_000;
const POLL_MS = 200;

function check(truth: boolean, got: unknown): asserts truth {
  if (!truth) throw new Error(`not as it should be: ${JSON.stringify(got)}`);
}

function equal<T>(got: T, wanted: NoInfer<T>) {
  check(JSON.stringify(got) === JSON.stringify(wanted), { got, wanted });
}

// Return what a reply that must be a success has; `data` holds our envelope.
async function be<T>(asked: Promise<{ data?: { data: T }; error?: unknown }>): Promise<T> {
  const { data, error } = await asked;
  check(data !== undefined, error);
  return data.data;
}

// Loses the first reply of each path in `losing`, after the service has done what it says.
class Losing {
  losing: Set<string>;
  sent: string[] = [];

  constructor(...losing: string[]) {
    this.losing = new Set(losing);
  }

  send: Send = async (request) => {
    const path = new URL(request.url).pathname;
    this.sent.push(`${request.method} ${path}`);
    const reply = await fetch(request);
    if (!this.losing.delete(path)) return reply;
    await reply.arrayBuffer();
    throw new TypeError("lost");
  };
}

async function getAToken() {
  const client = createClient<paths, "application/json">({ baseUrl: url });
  const { data, error } = await client.POST("/auth/token", {
    body: { grant_type: "client_credentials", client_id: id, client_secret: secret },
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
  });
  check(data !== undefined && data.expires_in > 0, error);
}

async function renewAToken() {
  const wire = new Losing();
  let spoil = false;
  const spoiling: Send = (request) => {
    if (spoil && request.method === "GET") request.headers.set("Authorization", "Bearer revoked");
    spoil = false;
    return wire.send(request);
  };
  const client = createClient<paths, "application/json">({
    baseUrl: url,
    fetch: keepingToken(spoiling, url, id, secret),
  });
  await be(client.GET("/v1/wallet"));
  spoil = true;
  await be(client.GET("/v1/wallet"));
  await be(client.GET("/v1/wallet"));
  const [token, wallet] = ["POST /auth/token", "GET /v1/wallet"];
  equal(wire.sent, [token, wallet, wallet, token, wallet, wallet]);
}

async function lookUpANumber(client: Client) {
  const found = await be(
    client.POST("/number-lookup", { params: { query: { phone_number: "+447400123456" } } }),
  );
  equal(found.country_code, "GB");
  check(Boolean(found.carrier?.name), found);
  const bad = await client.POST("/number-lookup", { params: { query: { phone_number: "seven" } } });
  check(bad.error !== undefined && bad.response.status === 422, bad.data);
  equal(bad.error.error.code, "VALIDATION_ERROR");
  // It is away for the first attempt of an organization: the second one is that of the recipe.
  const late = await be(
    client.POST("/number-lookup", {
      params: { query: { phone_number: "+15005550004" }, header: { "Idempotency-Key": "lookup-1" } },
    }),
  );
  equal(late.phone_number, "+15005550004");
}

async function finishAJob(client: Client) {
  const made = await be(
    client.POST("/number-lookup/bulk", {
      body: { phone_numbers: ["+447400123456", "+33612345678"] },
      params: { header: { "Idempotency-Key": "job-1" } },
    }),
  );
  const path = { job_id: made.job_id };
  const read = () => be(client.GET("/number-lookup/bulk/{job_id}", { params: { path } }));
  const end = Date.now() + JOB_MS_MAX;
  let job = await read();
  while (!["completed", "failed"].includes(job.status)) {
    check(Date.now() < end, job);
    await new Promise((wake) => setTimeout(wake, POLL_MS));
    job = await read();
  }
  equal(job.items?.map((each) => [each.phone_number, each.error]), [
    ["+447400123456", null],
    ["+33612345678", null],
  ]);
}

async function chooseAPlan(client: Client): Promise<Plan> {
  const query = { country: "FR", coverage_type: "local" } as const;
  const [plan] = (await be(client.GET("/v1/plans", { params: { query } }))).data;
  check(plan !== undefined, plan);
  const path = { plan_id: plan.id };
  const coverage = await be(client.GET("/v1/plans/{plan_id}/coverage", { params: { path } }));
  check(coverage.countries.some((each) => each.country_code === "FR"), coverage);
  return plan;
}

// Buy a link; first replies are lost, and what is sent again gives the same link.
async function buy(client: Client, wire: Losing, plan: Plan): Promise<string> {
  const order = {
    body: { plan_id: plan.id, name: "Van 12" },
    params: { header: { "Idempotency-Key": "order-1" } },
  };
  const made = await client.POST("/v1/links", order);
  const link = made.data?.data; // A quote, a request or a link, by the status.
  check(link !== undefined && "iccid" in link, made.error);
  const [token, links] = ["POST /auth/token", "POST /v1/links"];
  equal(wire.sent, [token, token, links, links]);
  const again = await client.POST("/v1/links", order);
  equal(again.response.headers.get("Idempotency-Replayed"), "true");
  check(again.data !== undefined && "iccid" in again.data.data, again.error);
  equal(again.data.data.id, link.id);
  equal([link.amount_charged, link.status], [plan.partner_cost, "active"]);
  return link.id;
}

// The details of an error have the types of its status.
async function failToBuy(client: Client) {
  const plans = await be(client.GET("/v1/plans", { params: { query: { per_page: 100 } } }));
  const broken = plans.data.find((each) => each.provider_plan_id === "sandbox-no-esim");
  check(broken !== undefined, plans);
  const refused = await client.POST("/v1/links", { body: { plan_id: broken.id } });
  check(refused.error !== undefined && refused.response.status === 502, refused.data);
  const { code, details } = refused.error.error as components["schemas"]["NetworkErrorDetail"];
  equal(code, "PROVISIONING_ERROR");
  equal([details.reason, typeof details.retryable], ["no_esim_available", "boolean"]);
}

async function readLists(client: Client, identifier: string) {
  const query = { status: "active" } as const;
  const links = await be(client.GET("/v1/links", { params: { query } }));
  equal(links.data.map((each) => each.id), [identifier]);
  const params = { path: { identifier } };
  const history = await be(client.GET("/v1/links/{identifier}/history", { params }));
  equal(history.data.map((each) => each.kind), ["activation"]);
  const entries = [];
  for await (const each of everyTransaction(client, 2)) entries.push(each);
  equal(entries.map((each) => each.sequence), entries.map((_, at) => entries.length - at));
  check(entries.length > 4, entries);
  equal(entries[0]?.balance_after, (await be(client.GET("/v1/wallet"))).balance);
}

// What only a machine-to-machine client does: name an organization in a header.
async function actForAnOrganization() {
  const { MACHINE_ID = "", MACHINE_SECRET = "", ORGANIZATION = "" } = process.env;
  const header = { "X-Organization-Id": ORGANIZATION };
  await be(connect(url, url, MACHINE_ID, MACHINE_SECRET).GET("/v1/wallet", { params: { header } }));
}

const client = connect(url, url, id, secret);
await getAToken();
await renewAToken();
await actForAnOrganization();
await lookUpANumber(client);
await finishAJob(client);
const plan = await chooseAPlan(client);
const wire = new Losing("/auth/token", "/v1/links");
const send = keepingToken(repeating(wire.send), url, id, secret);
const losing = createClient<paths, "application/json">({ baseUrl: url, fetch: send });
const link = await buy(losing, wire, plan);
await failToBuy(losing);
await readLists(losing, link);
console.log("walked");
