// Verifies webhooks with the official SDK. Reads a JSON list of {body, headers} from a file, and prints the number of
// those that it accepts. A second file name is a list that it must refuse.
import { readFileSync } from "node:fs";
import Anthropic from "@anthropic-ai/sdk";

const [key, good, bad] = process.argv.slice(2);
const client = new Anthropic({ apiKey: "unused" });
let accepted = 0;
for (const { body, headers } of JSON.parse(readFileSync(good, "utf8"))) {
    const event = client.beta.webhooks.unwrap(body, { headers, key });
    if (event.type !== "event" || event.id !== headers["webhook-id"]) throw new Error(`wrong event: ${body}`);
    accepted += 1;
}
for (const { body, headers } of JSON.parse(readFileSync(bad, "utf8"))) {
    let refused = false;
    try {
        client.beta.webhooks.unwrap(body, { headers, key });
    } catch {
        refused = true;
    }
    if (!refused) throw new Error(`a forged webhook was accepted: ${body}`);
}
console.log(accepted);
