// Collects keys into few messages, because the server takes 50 in a second; and knows which of them may be lost.
/** Keys within this time go in one message. */
const BATCH_MS = 30;
const MAX_MESSAGE_BYTES = 32 * 1024;
/** A key that was sent longer ago has arrived, or its program prints nothing. */
const UNCONFIRMED_MS = 5_000;

export class KeyOutbox {
  #send: (bytes: Uint8Array<ArrayBuffer>) => void;
  #waiting: Uint8Array[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Bytes that were sent and after which nothing arrived. */
  #unconfirmed = 0;
  #sentAt = 0;

  constructor(send: (bytes: Uint8Array<ArrayBuffer>) => void) {
    this.#send = send;
  }

  /** The first key goes at once; those that follow soon are collected. */
  push(bytes: Uint8Array): void {
    this.#waiting.push(bytes);
    if (this.#timer === undefined) {
      this.#flush();
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        if (this.#waiting.length > 0) {
          this.push(joinBytes(this.#waiting.splice(0)));
        }
      }, BATCH_MS);
    }
  }

  /** The program has printed something, so the connection worked until now. */
  confirm(): void {
    this.#unconfirmed = 0;
  }

  countUnconfirmed(): number {
    return Date.now() - this.#sentAt < UNCONFIRMED_MS ? this.#unconfirmed : 0;
  }

  /** Ends the batch, and returns what was not sent. */
  takeUnsent(): Uint8Array {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#unconfirmed = 0;
    return joinBytes(this.#waiting.splice(0));
  }

  #flush(): void {
    const bytes = joinBytes(this.#waiting.splice(0));
    for (let at = 0; at < bytes.length; at += MAX_MESSAGE_BYTES) {
      this.#send(bytes.slice(at, at + MAX_MESSAGE_BYTES));
    }
    this.#unconfirmed += bytes.length;
    this.#sentAt = Date.now();
  }
}

export function joinBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
