// Splits the patch of a session into the texts of its files, while it arrives.
const HEADER = "diff --git ";
const HEADER_LINE = `\n${HEADER}`;

/** Call `add` for each piece, then `finish`. Each returns the files that are complete. */
export class PatchSplitter {
  #rest = "";
  /** How far the rest was searched: a long file is not searched again with each piece. */
  #searched = 0;

  add(piece: string): string[] {
    this.#rest += piece;
    const files: string[] = [];
    let start = 0;
    let end = this.#rest.indexOf(HEADER_LINE, Math.max(0, this.#searched - HEADER_LINE.length));
    while (end !== -1) {
      const file = this.#rest.slice(start, end + 1);
      if (file.startsWith(HEADER)) {
        files.push(file);
      }
      start = end + 1;
      end = this.#rest.indexOf(HEADER_LINE, start);
    }
    this.#rest = this.#rest.slice(start);
    this.#searched = this.#rest.length;
    return files;
  }

  finish(): string[] {
    const file = this.#rest;
    this.#rest = "";
    this.#searched = 0;
    return file.startsWith(HEADER) ? [file] : [];
  }
}

const ESCAPES: Record<string, number> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, "\\": 92 };

/** A path as git prints it: in quotes with escaped bytes if it has unusual characters. */
export function unquotePath(text: string): string {
  if (!text.startsWith('"')) {
    return text;
  }
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  const body = text.slice(1, text.endsWith('"') ? -1 : undefined);
  for (let index = 0; index < body.length; index += 1) {
    if (body[index] !== "\\") {
      const character = String.fromCodePoint(body.codePointAt(index) ?? 0);
      bytes.push(...encoder.encode(character));
      index += character.length - 1;
      continue;
    }
    const octal = /^[0-3][0-7]{2}/.exec(body.slice(index + 1, index + 4));
    if (octal === null) {
      bytes.push(ESCAPES[body[index + 1] ?? ""] ?? 92);
      index += 1;
    } else {
      bytes.push(Number.parseInt(octal[0], 8));
      index += 3;
    }
  }
  return decodeBytes(Uint8Array.from(bytes));
}

/** As the API does: bytes that are not UTF-8 become `\xNN`. */
function decodeBytes(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    let text = "";
    for (let index = 0; index < bytes.length;) {
      const size = Math.min(sequenceLength(bytes[index] ?? 0), bytes.length - index);
      try {
        text += new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes.subarray(index, index + size));
        index += size;
      } catch {
        text += `\\x${(bytes[index] ?? 0).toString(16).padStart(2, "0")}`;
        index += 1;
      }
    }
    return text;
  }
}

function sequenceLength(first: number): number {
  return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
}
