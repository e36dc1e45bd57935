// Stores each file of the build in brotli and gzip too, so that the server compresses nothing.
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

import type { Plugin } from "vite";

const COMPRESSED = /\.(js|css|svg|json|webmanifest|txt)$/;
const SMALLEST_BYTES = 512;

export function compressFiles(): Plugin {
  let directory = "";
  return {
    name: "footplate-compress",
    apply: "build",
    configResolved(config) {
      directory = join(config.root, config.build.outDir);
    },
    async closeBundle() {
      for (const name of await readdir(directory, { recursive: true })) {
        const path = join(directory, name);
        if (COMPRESSED.test(name) && (await stat(path)).size >= SMALLEST_BYTES) {
          await compress(path);
        }
      }
    },
  };
}

async function compress(path: string): Promise<void> {
  const content = await readFile(path);
  // Quality 9 costs a fifth of the time of 11, and two percent more bytes.
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  await writeFile(`${path}.br`, await promisify(brotliCompress)(content, { params }));
  await writeFile(`${path}.gz`, await promisify(gzip)(content, { level: 9 }));
}
