// Verifies webhooks as partners do; prints for each case what it tells, or null if it is refused.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

const told = JSON.parse(readFileSync(process.argv[2], "utf-8")).map(({ secret, headers, body }) => {
  try {
    return new Webhook(secret).verify(body, headers);
  } catch {
    return null;
  }
});
console.log(JSON.stringify(told));
