// Reads server-sent events and survives lost connections: it resumes after the last id that it received, and waits longer
// after each failed attempt.
import { createParser } from "eventsource-parser";

import { apiFetch, readError } from "./client";
import { ApiError } from "./errors";

export type StreamState = "catching_up" | "live" | "offline";

export interface Frame {
  event: string;
  id: string | null;
  data: unknown;
}

export interface StreamOptions {
  /** The address, without the position. */
  url: string;
  /** Resume after this id. Without it, the stream starts now. */
  after?: string | null;
  onFrame: (frame: Frame) => void;
  onState?: (state: StreamState) => void;
  /** The server no longer has the position: everything must be read again. The stream then starts now. */
  onReset?: () => void;
  /** The server refused the stream for good. */
  onRefused?: (error: ApiError) => void;
  /** For tests. */
  fetch?: (request: Request) => Promise<Response>;
  random?: () => number;
}

/** The server sends a comment every 15 s; a connection that is silent for longer than this is lost. */
const SILENCE_MS = 40_000;
/** A resumed stream is live again when no frame arrived for this long. */
const QUIET_MS = 250;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;

/** The wait before an attempt, the first of which is number 0: doubled each time, with jitter of a quarter. */
export function waitBefore(attempt: number, random: () => number = Math.random): number {
  const wait = Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_WAIT_MS);
  return Math.round(wait * (0.75 + random() * 0.5));
}

export class EventStream {
  #options: StreamOptions;
  #lastId: string | null;
  #attempt = 0;
  #state: StreamState | null = null;
  #closed = false;
  #controller: AbortController | null = null;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #quiet: ReturnType<typeof setTimeout> | undefined;
  #wake: (() => void) | null = null;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#lastId = options.after ?? null;
  }

  get lastId(): string | null {
    return this.#lastId;
  }

  open(): void {
    globalThis.addEventListener("online", this.#retryNow);
    globalThis.addEventListener("offline", this.#drop);
    document.addEventListener("visibilitychange", this.#retryNow);
    void this.#run();
  }

  close(): void {
    this.#closed = true;
    globalThis.removeEventListener("online", this.#retryNow);
    globalThis.removeEventListener("offline", this.#drop);
    document.removeEventListener("visibilitychange", this.#retryNow);
    clearTimeout(this.#silence);
    clearTimeout(this.#quiet);
    this.#controller?.abort();
    this.#wake?.();
  }

  /** Without a network, the connection is silent for long before it counts as lost. */
  #drop = (): void => {
    this.#controller?.abort();
  };

  #retryNow = (): void => {
    if (document.visibilityState === "visible") {
      this.#wake?.();
    }
  };

  async #run(): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#read();
      } catch (error) {
        if (this.#isFinal(error)) {
          return;
        }
      }
      clearTimeout(this.#silence);
      clearTimeout(this.#quiet);
      if (!this.#isClosed()) {
        this.#setState(this.#attempt === 0 ? "catching_up" : "offline");
        await this.#sleep(waitBefore(this.#attempt, this.#options.random));
        this.#attempt += 1;
      }
    }
  }

  /** Handles a refusal. Returns whether the stream ends with it. */
  #isFinal(error: unknown): boolean {
    if (this.#closed) {
      return true;
    }
    if (!(error instanceof ApiError) || error.isTemporary) {
      return false;
    }
    if (this.#lastId !== null && error.status !== 401 && error.status !== 403 && error.status !== 404) {
      this.#lastId = null;
      this.#options.onReset?.();
      return false;
    }
    this.#setState("offline");
    this.#options.onRefused?.(error);
    return true;
  }

  async #read(): Promise<void> {
    const controller = new AbortController();
    this.#controller = controller;
    const headers = new Headers({ accept: "text/event-stream" });
    if (this.#lastId !== null) {
      headers.set("last-event-id", this.#lastId);
    }
    this.#watchSilence();
    const request = new Request(new URL(this.#options.url, location.origin), { headers, signal: controller.signal });
    const response = await (this.#options.fetch ?? apiFetch)(request);
    if (!response.ok) {
      throw await readError(response);
    }
    if (response.body === null) {
      throw new Error("the stream has no body");
    }
    const isResuming = this.#lastId !== null;
    this.#attempt = 0;
    this.#setState(isResuming ? "catching_up" : "live");
    this.#watchQuiet();
    const parser = createParser({
      onEvent: (event) => {
        this.#handle(event.event ?? "message", event.id ?? null, event.data);
      },
    });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      this.#watchSilence();
      parser.feed(value);
    }
  }

  #handle(event: string, id: string | null, text: string): void {
    if (this.#closed) {
      return;
    }
    if (event === "error") {
      this.#controller?.abort();
      return;
    }
    const data: unknown = JSON.parse(text === "" ? "null" : text);
    if (event !== "ping") {
      this.#options.onFrame({ event, id, data });
    }
    // After the frame was handled, so that a handler that throws does not lose it.
    if (id !== null) {
      this.#lastId = id;
    }
    if (event === "ping") {
      this.#setState("live");
    } else {
      this.#watchQuiet();
    }
  }

  #watchSilence(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => {
      this.#controller?.abort();
    }, SILENCE_MS);
  }

  #watchQuiet(): void {
    if (this.#state === "live") {
      return;
    }
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => {
      this.#setState("live");
    }, QUIET_MS);
  }

  #setState(state: StreamState): void {
    if (state !== this.#state && !this.#closed) {
      this.#state = state;
      this.#options.onState?.(state);
    }
  }

  #isClosed(): boolean {
    return this.#closed;
  }

  async #sleep(milliseconds: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = null;
  }
}
