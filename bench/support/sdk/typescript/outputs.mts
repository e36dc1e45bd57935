// Lists and downloads the outputs of sessions as users of the SDK do.
//
// node outputs.mts BASE_URL KEY SESSION...: each line of the output is a JSON array for one file: the session, the file
// as it was listed, and the SHA-256 of its content.

import { createHash } from 'node:crypto';
import Anthropic from '@anthropic-ai/sdk';

const [baseURL, apiKey, ...sessions] = process.argv.slice(2);
const client = new Anthropic({ baseURL, apiKey, authToken: null });

for (const session of sessions) {
  for await (const file of client.beta.files.list({ scope_id: session })) {
    const response = await client.beta.files.download(file.id);
    const content = Buffer.from(await response.arrayBuffer());
    console.log(JSON.stringify([session, file, createHash('sha256').update(content).digest('hex')]));
  }
}
