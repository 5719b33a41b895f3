// Writes TypeScript programs that assign every example of an event, and what the server says of each kind of
// message, to the type that a generator made for it, and that send a text with the members it needs. An
// unknown or wrong member does not compile. The same values are written to values.json for the program in Go.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";

const [examples, kinds, directory] = process.argv.slice(2);
const read = (file) => Object.entries(JSON.parse(readFileSync(file, "utf8")));
const events = read(examples);
if (!events.some(([kind]) => kind === "webhook.test")) throw new Error("there is no example of webhook.test");
const files = readdirSync(kinds).filter((file) => file.endsWith(".json"));
if (files.length < 13) throw new Error(`there are golden files of ${files.length} kinds of messages only`);

// A value is [type, what it is]. In golden files, events bear their types as names; the rest are messages.
const golden = files.flatMap((file) => read(`${kinds}/${file}`));
const values = [...events, ...golden.map(([name, value]) => [name.includes(".") ? name : "message", value])];

const camel = (kind) => kind.split(/[._]/).map((word) => word[0].toUpperCase() + word.slice(1)).join("");
const program = (head, type, tail) =>
  [head, ...values.map(([kind, value], i) => `export const value${i}: ${type(kind)} = ${JSON.stringify(value)};`), tail].join("\n");
const message = `{ deviceId: "dev_1", to: "+15551234567", body: "Hello" }`;

writeFileSync(`${directory}/typescript.ts`, program(
  `import createClient from "openapi-fetch";\nimport type { components, paths, webhooks } from "./schema";`,
  (kind) => kind === "message" ? `components["schemas"]["Message"]` : `webhooks["${kind}"]["post"]["requestBody"]["content"]["application/json"]`,
  `export const sent = createClient<paths>({ baseUrl: "http://127.0.0.1" }).POST("/v1/messages", { body: ${message} });\n`));
writeFileSync(`${directory}/heyapi.ts`, program(
  `import type * as hey from "./hey/types.gen";\nimport { sendMessage } from "./hey/sdk.gen";`,
  (kind) => kind === "message" ? "hey.Message" : `hey.On${camel(kind)}WebhookRequest["body"]`,
  `export const sent = sendMessage({ body: ${message} });\n`));
writeFileSync(`${directory}/go/kinds.go`, [
  `package main\n\nimport "clients/client"\n\nvar kinds = map[string]any{`,
  `\t"message": client.Message{},`,
  ...events.map(([kind]) => `\t"${kind}": client.On${camel(kind)}JSONRequestBody{},`), "}\n"].join("\n"));
writeFileSync(`${directory}/values.json`, JSON.stringify(values));
console.log(`${events.length} kinds of events and ${files.length} kinds of messages`);
