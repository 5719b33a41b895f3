// Writes TypeScript programs that assign every example of an event to the type that a generator made for
// it, and that send a text with the members it needs. An unknown or wrong member does not compile.
import { readFileSync, writeFileSync } from "node:fs";

const [examples, directory] = process.argv.slice(2);
const events = Object.entries(JSON.parse(readFileSync(examples, "utf8")));
if (!events.some(([kind]) => kind === "webhook.test")) throw new Error("there is no example of webhook.test");

const camel = (kind) => kind.split(/[._]/).map((word) => word[0].toUpperCase() + word.slice(1)).join("");
const program = (head, type, tail) =>
  [head, ...events.map(([kind, event], i) => `export const event${i}: ${type(kind)} = ${JSON.stringify(event)};`), tail].join("\n");
const message = `{ deviceId: "dev_1", to: "+15551234567", body: "Hello" }`;

writeFileSync(`${directory}/typescript.ts`, program(
  `import createClient from "openapi-fetch";\nimport type { paths, webhooks } from "./schema";`,
  (kind) => `webhooks["${kind}"]["post"]["requestBody"]["content"]["application/json"]`,
  `export const sent = createClient<paths>({ baseUrl: "http://127.0.0.1" }).POST("/v1/messages", { body: ${message} });\n`));
writeFileSync(`${directory}/heyapi.ts`, program(
  `import type * as hey from "./hey/types.gen";\nimport { sendMessage } from "./hey/sdk.gen";`,
  (kind) => `hey.On${camel(kind)}WebhookRequest["body"]`,
  `export const sent = sendMessage({ body: ${message} });\n`));
writeFileSync(`${directory}/go/kinds.go`, [
  `package main\n\nimport "clients/client"\n\nvar kinds = map[string]any{`,
  ...events.map(([kind]) => `\t"${kind}": new(client.On${camel(kind)}JSONRequestBody),`), "}\n"].join("\n"));
console.log(`${events.length} kinds of events`);
