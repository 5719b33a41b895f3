// Verifies captured deliveries, one JSON object per line, with the libraries that
// receivers use. Every library must accept each delivery, and refuse it after one
// byte has changed.
import { readFileSync } from "node:fs";
import * as standard from "standardwebhooks";
import * as svix from "svix";

const libraries = { standardwebhooks: standard.Webhook, svix: svix.Webhook };
const accepts = (Webhook, d, body) => {
  try {
    new Webhook(d.secret).verify(body, d.headers);
    return true;
  } catch {
    return false;
  }
};

const lines = readFileSync(process.argv[2], "utf8").trim().split("\n").map((l) => JSON.parse(l));
let wrong = 0;
for (const [name, Webhook] of Object.entries(libraries)) {
  for (const d of lines) {
    if (accepts(Webhook, d, d.body) !== d.valid || accepts(Webhook, d, d.body + " ")) {
      console.error(`${name}: ${d.what}: ${d.valid ? "a good one is refused, or a changed one accepted" : "accepted"}`);
      wrong++;
    }
  }
  console.log(`${name}: ${lines.length} deliveries checked`);
}
if (lines.length < 10) throw new Error(`only ${lines.length} deliveries were captured`);
process.exit(wrong ? 1 : 0);
