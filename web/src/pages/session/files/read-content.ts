// Reads a file for its preview: an image, or the beginning of a text.
import { apiFetch, readError } from "@/api/client";
import { contentUrl, type SessionFile } from "./queries";

export type Preview =
  | { kind: "image"; blob: Blob }
  | { kind: "text"; text: string; isCut: boolean }
  /** Neither, or too large. */
  | { kind: "none"; reason: string };

const IMAGES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
  svg: "image/svg+xml",
};
const LARGEST_IMAGE = 20 << 20;
export const LARGEST_TEXT = 1 << 20;

/** The type by which a browser can show it. The type that the file claims is not used, because it may be any. */
export function imageType(name: string): string | null {
  const extension = /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(IMAGES, extension) ? (IMAGES[extension] ?? null) : null;
}

export async function readPreview(file: SessionFile, signal: AbortSignal): Promise<Preview> {
  const type = imageType(file.name);
  if (type !== null && file.size > LARGEST_IMAGE) {
    return { kind: "none", reason: "This image is too large for a preview." };
  }
  const response = await apiFetch(new Request(new URL(contentUrl(file.id), location.origin), { signal }));
  if (!response.ok) {
    throw await readError(response);
  }
  if (type !== null) {
    // An image element runs no scripts of an SVG and loads nothing for it.
    return { kind: "image", blob: new Blob([await response.arrayBuffer()], { type }) };
  }
  const { bytes, isCut } = await readStart(response, LARGEST_TEXT);
  const text = decodeText(bytes, isCut);
  return text === null ? { kind: "none", reason: "This file is not text." } : { kind: "text", text, isCut };
}

async function readStart(response: Response, limit: number): Promise<{ bytes: Uint8Array; isCut: boolean }> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    pieces.push(value);
    size += value.length;
    if (size > limit) {
      await reader.cancel();
      break;
    }
  }
  const bytes = new Uint8Array(Math.min(size, limit));
  let start = 0;
  for (const piece of pieces) {
    bytes.set(piece.subarray(0, bytes.length - start), start);
    start = Math.min(start + piece.length, bytes.length);
  }
  return { bytes, isCut: size > limit };
}

/** Null: the bytes are not text in UTF-8. A cut text may end inside of a character. */
export function decodeText(bytes: Uint8Array, isCut: boolean): string | null {
  if (bytes.includes(0)) {
    return null;
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
  } catch {
    return null;
  }
}
