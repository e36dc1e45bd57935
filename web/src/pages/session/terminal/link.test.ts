import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { type LinkStatus, TerminalLink } from "./link";

class FakeSocket {
  binaryType = "";
  onmessage: ((event: { data: string | ArrayBuffer }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  sent: (string | Uint8Array)[] = [];

  send(data: string | Uint8Array): void {
    this.sent.push(data);
  }

  close(): void {
    // The tests end connections with `cut`.
  }

  says(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  prints(text: string): void {
    this.onmessage?.({ data: new TextEncoder().encode(text).buffer });
  }

  cut(code = 1006): void {
    this.onclose?.({ code });
  }

  get keys(): string {
    return this.sent
      .filter((one) => typeof one !== "string")
      .map((one) => new TextDecoder().decode(one))
      .join("");
  }
}

describe("TerminalLink", () => {
  let sockets: FakeSocket[];
  let status: LinkStatus;
  let restarts: number;
  let refusal: string | null;
  let link: TerminalLink;

  function last(): FakeSocket {
    return sockets.at(-1) ?? expect.fail("no connection was opened");
  }

  async function reconnect(programId: string | null): Promise<void> {
    await vi.advanceTimersByTimeAsync(1_000);
    last().says({ type: "attached", writable: true });
    if (programId !== null) {
      last().says({ type: "opened", terminal_id: programId, columns: 80, rows: 24 });
    }
  }

  beforeEach(() => {
    vi.useFakeTimers();
    sockets = [];
    restarts = 0;
    refusal = null;
    link = new TerminalLink({
      url: "ws://test/",
      onOutput: () => undefined,
      onRestart: () => {
        restarts += 1;
      },
      onStatus: (next) => {
        status = next;
      },
      findRefusal: () => Promise.resolve(refusal),
      createSocket: () => {
        const socket = new FakeSocket();
        sockets.push(socket);
        return socket as unknown as WebSocket;
      },
    });
    link.open();
    last().says({ type: "attached", writable: true });
    last().says({ type: "opened", terminal_id: "one", columns: 80, rows: 24 });
  });

  afterEach(() => {
    link.close();
    vi.useRealTimers();
  });

  it("sends keys, and the size", () => {
    expect(link.type("ls\r")).toBe(true);
    link.resize(100, 30);
    expect(last().keys).toBe("ls\r");
    expect(last().sent.at(-1)).toBe('{"type":"resize","columns":100,"rows":30}');
    expect(status.programId).toBe("one");
  });

  it("keeps keys while the connection is lost, and sends them to the same shell", async () => {
    last().cut();
    expect(link.type("echo ")).toBe(true);
    expect(link.type("kept")).toBe(true);
    expect(status).toMatchObject({ state: "lost", kept: 9 });
    await reconnect("one");
    expect(last().keys).toBe("echo kept");
    expect(status).toMatchObject({ state: "attached", kept: 0, warning: null });
    expect(restarts).toBe(2);
  });

  it("does not send them to another shell, and says so", async () => {
    last().cut();
    link.type("rm -rf /");
    await reconnect("two");
    await vi.advanceTimersByTimeAsync(3_000);
    expect(last().keys).toBe("");
    expect(status.warning).toContain("8 characters that you typed were not sent");
  });

  it("says that keys without an answer may be lost", () => {
    link.type("abc");
    last().prints("a");
    vi.advanceTimersByTime(50);
    link.type("de");
    link.type("f");
    last().cut();
    expect(status.warning).toContain("the last 2 characters");
    expect(status.kept).toBe(1);
  });

  it("keeps keys only for a short time", async () => {
    last().cut();
    await vi.advanceTimersByTimeAsync(21_000);
    sockets.forEach((socket) => {
      socket.onclose = null;
    });
    expect(link.type("late")).toBe(false);
    expect(status.warning).toContain("not kept");
  });

  it("drops keys of a connection that only watches", async () => {
    last().cut();
    await vi.advanceTimersByTimeAsync(1_000);
    last().says({ type: "attached", writable: false });
    last().says({ type: "opened", terminal_id: "one", columns: 80, rows: 24 });
    expect(link.type("x")).toBe(false);
    expect(last().sent).toEqual([]);
  });

  it("sends fast keys in few messages", async () => {
    for (let count = 0; count < 100; count += 1) {
      link.type("k");
      await vi.advanceTimersByTimeAsync(3);
    }
    await vi.advanceTimersByTimeAsync(50);
    expect(last().keys).toBe("k".repeat(100));
    expect(last().sent.length).toBeLessThan(15);
  });

  it("stops when the server refuses, with the reason", async () => {
    last().says({ type: "error", error: { message: "The key was revoked." } });
    last().cut(1008);
    expect(status).toMatchObject({ state: "refused", refusal: "The key was revoked." });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sockets).toHaveLength(1);
  });

  it("says why a connection cannot be opened", async () => {
    refusal = "There is no such session.";
    last().cut();
    await vi.advanceTimersByTimeAsync(1_000);
    last().cut();
    await vi.advanceTimersByTimeAsync(0);
    expect(status).toMatchObject({ state: "refused", refusal: "There is no such session." });
  });

  it("reports the end of the shell", () => {
    last().says({ type: "closed", terminal_id: "one", reason: "The shell has ended." });
    expect(status).toMatchObject({ programId: null, closedReason: "The shell has ended." });
    expect(link.type("x")).toBe(false);
  });
});
