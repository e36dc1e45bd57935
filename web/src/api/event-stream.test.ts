import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { EventStream, type Frame, type StreamState, waitBefore } from "./event-stream";

const encoder = new TextEncoder();

/** A server whose connections the test opens, feeds and cuts. */
class Server {
  requests: Request[] = [];
  #bodies: ReadableStreamDefaultController<Uint8Array>[] = [];
  refusals: (Response | Error)[] = [];

  fetch = (request: Request): Promise<Response> => {
    this.requests.push(request);
    const refusal = this.refusals.shift();
    if (refusal instanceof Error) {
      return Promise.reject(refusal);
    }
    if (refusal !== undefined) {
      return Promise.resolve(refusal);
    }
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#bodies.push(controller);
        request.signal.addEventListener("abort", () => {
          controller.error(new DOMException("aborted", "AbortError"));
        });
      },
    });
    return Promise.resolve(new Response(body));
  };

  async send(text: string): Promise<void> {
    this.#bodies.at(-1)?.enqueue(encoder.encode(text));
    await vi.advanceTimersByTimeAsync(0);
  }

  async cut(): Promise<void> {
    this.#bodies.at(-1)?.close();
    await vi.advanceTimersByTimeAsync(0);
  }

  get positions(): (string | null)[] {
    return this.requests.map((request) => request.headers.get("last-event-id"));
  }
}

describe("EventStream", () => {
  let server: Server;
  let frames: Frame[];
  let states: StreamState[];
  let resets: number;
  let refused: number;
  let stream: EventStream;

  beforeEach(() => {
    vi.useFakeTimers();
    server = new Server();
    frames = [];
    states = [];
    resets = 0;
    refused = 0;
    stream = new EventStream({
      url: "/v1/events/stream",
      onFrame: (frame) => {
        frames.push(frame);
      },
      onState: (state) => {
        states.push(state);
      },
      onReset: () => {
        resets += 1;
      },
      onRefused: () => {
        refused += 1;
      },
      fetch: server.fetch,
      random: () => 0.5,
    });
    stream.open();
  });

  afterEach(() => {
    stream.close();
    vi.useRealTimers();
  });

  it("resumes after the last frame, and shows each once", async () => {
    await server.send('id: 1\nevent: a\ndata: {"n":1}\n\nid: 2\ndata: {"n":2}\n\nid: 3\nda');
    await server.cut();
    await vi.advanceTimersByTimeAsync(waitBefore(0, () => 0.5));
    expect(server.positions).toEqual([null, "2"]);
    await server.send('id: 3\ndata: {"n":3}\n\n');
    expect(frames.map((frame) => frame.data)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    expect(stream.lastId).toBe("3");
  });

  it("is live, catches up after a cut, and is offline while nothing answers", async () => {
    await server.send("id: 1\ndata: {}\n\n");
    server.refusals = [new TypeError("network"), new TypeError("network")];
    await server.cut();
    expect(states).toEqual(["live", "catching_up"]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(states.at(-1)).toBe("offline");
    await vi.advanceTimersByTimeAsync(3_000);
    expect(server.requests).toHaveLength(4);
    expect(states.at(-1)).toBe("live");
  });

  it("tries again at once when the network is lost, and when it is back", async () => {
    await server.send("id: 1\ndata: {}\n\n");
    server.refusals = [new TypeError("network"), new TypeError("network")];
    globalThis.dispatchEvent(new Event("offline"));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(states.at(-1)).toBe("offline");
    server.refusals = [];
    globalThis.dispatchEvent(new Event("online"));
    await vi.advanceTimersByTimeAsync(300);
    expect(states.at(-1)).toBe("live");
  });

  it("takes a silent connection for lost", async () => {
    await vi.advanceTimersByTimeAsync(39_000);
    expect(server.requests).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(server.requests).toHaveLength(2);
  });

  it("starts again from now if the server no longer has the position", async () => {
    await server.send("id: 1\ndata: {}\n\n");
    server.refusals = [new Response(null, { status: 410 })];
    await server.cut();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(server.positions).toEqual([null, "1", null]);
    expect(resets).toBe(1);
  });

  it("ends when the server refuses the caller", async () => {
    server.refusals = [new Response(null, { status: 403 })];
    await server.cut();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([server.requests.length, refused]).toEqual([2, 1]);
  });

  it("tries again at once when the network is back", async () => {
    server.refusals = Array.from({ length: 6 }, () => new TypeError("network"));
    await server.cut();
    await vi.advanceTimersByTimeAsync(20_000);
    const before = server.requests.length;
    globalThis.dispatchEvent(new Event("online"));
    await vi.advanceTimersByTimeAsync(0);
    expect(server.requests.length).toBe(before + 1);
  });

  it("asks nothing more after it was closed", async () => {
    stream.close();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.requests).toHaveLength(1);
  });
});

it.each([
  [0, 500],
  [1, 1_000],
  [5, 16_000],
  [20, 30_000],
])("waits longer before attempt %i", (attempt, wait) => {
  expect(waitBefore(attempt, () => 0.5)).toBe(wait);
});
