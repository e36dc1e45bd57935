// The connection to a session's terminal: it reconnects by itself, keeps what is typed meanwhile, and says what it could
// not deliver.
import { waitBefore } from "@/api/event-stream";
import { joinBytes, KeyOutbox } from "./key-outbox";

export type LinkState = "connecting" | "attached" | "lost" | "refused";

export interface LinkStatus {
  state: LinkState;
  /** The program on the terminal. Null: none is open. */
  programId: string | null;
  canType: boolean;
  size: { columns: number; rows: number } | null;
  /** Why the last program ended. */
  closedReason: string | null;
  /** Characters that wait for the connection. */
  kept: number;
  /** What the person should know about keys that may be lost. */
  warning: string | null;
  /** Why the server refused the connection. */
  refusal: string | null;
}

export interface LinkOptions {
  url: string;
  onOutput: (bytes: Uint8Array) => void;
  /** The server sends everything again from here: the screen has to be cleared. */
  onRestart: () => void;
  onStatus: (status: LinkStatus) => void;
  /** Asks why a connection is refused, which a browser does not tell. Null: it is not known. */
  findRefusal: () => Promise<string | null>;
  createSocket?: (url: string) => WebSocket;
}

/** Keys are kept for this long after a connection is lost, and at most so many: older ones may surprise. */
const KEEP_MS = 20_000;
const KEEP_BYTES = 4_096;
/** After a reconnection, the program must be reported again within this time. */
const RETURN_MS = 3_000;
const POLICY_VIOLATION = 1008;
const encoder = new TextEncoder();

const INITIAL: LinkStatus = {
  state: "connecting",
  programId: null,
  canType: false,
  size: null,
  closedReason: null,
  kept: 0,
  warning: null,
  refusal: null,
};

export class TerminalLink {
  #options: LinkOptions;
  #status: LinkStatus = INITIAL;
  #socket: WebSocket | null = null;
  #attempt = 0;
  #closed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #returning: ReturnType<typeof setTimeout> | undefined;
  #kept: Uint8Array[] = [];
  #keptFor: string | null = null;
  #lostAt = 0;
  #outbox = new KeyOutbox((bytes) => this.#socket?.send(bytes));
  #sentSize = "";
  /** What the server reported before it closed the connection. */
  #error: string | null = null;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  get status(): LinkStatus {
    return this.#status;
  }

  open(): void {
    globalThis.addEventListener("online", this.#retryNow);
    globalThis.addEventListener("offline", this.#drop);
    this.#connect();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#returning);
    this.#outbox.takeUnsent();
    globalThis.removeEventListener("online", this.#retryNow);
    globalThis.removeEventListener("offline", this.#drop);
    this.#socket?.close();
  }

  /** Sends keys, or keeps them while the connection is lost. Returns false if they have no effect. */
  type(text: string): boolean {
    const bytes = encoder.encode(text);
    const { state, canType, programId } = this.#status;
    if (state === "attached" && this.#keptFor === null) {
      if (!canType || programId === null) {
        return false;
      }
      this.#outbox.push(bytes);
      return true;
    }
    if (!canType || (this.#keptFor ?? programId) === null || state === "refused") {
      return false;
    }
    if (Date.now() - this.#lostAt > KEEP_MS || this.#status.kept + bytes.length > KEEP_BYTES) {
      this.#update({ warning: "The connection is lost for too long. What you type now is not kept." });
      return false;
    }
    this.#kept.push(bytes);
    this.#update({ kept: this.#status.kept + bytes.length });
    return true;
  }

  resize(columns: number, rows: number): void {
    const size = JSON.stringify({ type: "resize", columns, rows });
    const { state, canType, programId } = this.#status;
    if (state === "attached" && canType && programId !== null && size !== this.#sentSize) {
      this.#sentSize = size;
      this.#socket?.send(size);
    }
  }

  dismissWarning(): void {
    this.#update({ warning: null });
  }

  #connect(): void {
    const socket = (this.#options.createSocket ?? ((url) => new WebSocket(url)))(this.#options.url);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (typeof data === "string") {
        this.#handle(JSON.parse(data) as Record<string, unknown>);
      } else {
        this.#outbox.confirm();
        this.#options.onOutput(new Uint8Array(data));
      }
    };
    socket.onclose = ({ code }) => {
      if (this.#socket === socket) {
        this.#lose(code);
      }
    };
  }

  #handle(message: Record<string, unknown>): void {
    switch (message["type"]) {
      case "attached":
        this.#attempt = 0;
        this.#error = null;
        this.#sentSize = "";
        this.#options.onRestart();
        this.#update({
          state: "attached",
          canType: message["writable"] === true,
          programId: null,
          closedReason: null,
          refusal: null,
        });
        this.#awaitReturn();
        break;
      case "opened":
        this.#update({ programId: String(message["terminal_id"]), closedReason: null, size: readSize(message) });
        this.#deliverKept();
        break;
      case "resized":
        this.#update({ size: readSize(message) });
        break;
      case "closed":
        if (message["terminal_id"] === this.#status.programId || this.#status.programId === null) {
          this.#update({
            programId: null,
            closedReason: typeof message["reason"] === "string" ? message["reason"] : "",
          });
        }
        break;
      case "error": {
        const { message: reason } = (message["error"] ?? {}) as { message?: unknown };
        this.#error = typeof reason === "string" ? reason : "The server closed the connection.";
        break;
      }
      default:
        break;
    }
  }

  #lose(code: number): void {
    this.#socket = null;
    if (this.#closed) {
      return;
    }
    const { state, programId } = this.#status;
    if (state === "attached") {
      this.#lostAt = Date.now();
      this.#keptFor = this.#keptFor ?? programId;
      const unconfirmed = this.#outbox.countUnconfirmed();
      if (unconfirmed > 0) {
        this.#update({
          warning: `The connection was lost. Check the last ${unconfirmed} characters that you typed: they may not have arrived.`,
        });
      }
    }
    const unsent = this.#outbox.takeUnsent();
    if (unsent.length > 0 && this.#keptFor !== null) {
      this.#kept.push(unsent);
      this.#update({ kept: this.#status.kept + unsent.length });
    }
    if (code === POLICY_VIOLATION && this.#error !== null) {
      this.#update({ state: "refused", refusal: this.#error });
      return;
    }
    this.#error = null;
    // A terminal that never answered is still being opened, and a browser does not say why it was refused.
    this.#update({ state: "lost" });
    const isOffline = typeof navigator !== "undefined" && !navigator.onLine;
    if (state !== "attached" && !isOffline) {
      void this.#options.findRefusal().then((refusal) => {
        if (refusal !== null && !this.#closed && this.#status.state !== "attached") {
          clearTimeout(this.#timer);
          this.#update({ state: "refused", refusal });
        }
      });
    }
    this.#timer = setTimeout(() => {
      this.#connect();
    }, waitBefore(this.#attempt));
    this.#attempt += 1;
  }

  /** The network is gone: a dead connection would take minutes to end by itself. */
  #drop = (): void => {
    const socket = this.#socket;
    if (socket !== null) {
      this.#socket = null;
      socket.onclose = null;
      socket.close();
      this.#lose(1006);
    }
  };

  #retryNow = (): void => {
    if (this.#socket === null && this.#status.state === "lost") {
      clearTimeout(this.#timer);
      this.#connect();
    }
  };

  #awaitReturn(): void {
    clearTimeout(this.#returning);
    if (this.#keptFor !== null) {
      this.#returning = setTimeout(() => {
        this.#discardKept();
      }, RETURN_MS);
    }
  }

  #deliverKept(): void {
    if (this.#keptFor === null || this.#status.programId !== this.#keptFor) {
      return;
    }
    clearTimeout(this.#returning);
    this.#keptFor = null;
    const kept = joinBytes(this.#kept.splice(0));
    this.#update({ kept: 0 });
    if (kept.length > 0) {
      this.#outbox.push(kept);
    }
  }

  #discardKept(): void {
    const count = this.#status.kept;
    this.#keptFor = null;
    this.#kept = [];
    this.#update({
      kept: 0,
      ...(count === 0
        ? {}
        : {
            warning: `${count} characters that you typed were not sent, because the shell was closed while the connection was lost.`,
          }),
    });
  }

  #update(change: Partial<LinkStatus>): void {
    this.#status = { ...this.#status, ...change };
    this.#options.onStatus(this.#status);
  }
}

function readSize(message: Record<string, unknown>): LinkStatus["size"] {
  const { columns, rows } = message as { columns?: unknown; rows?: unknown };
  return typeof columns === "number" && typeof rows === "number" ? { columns, rows } : null;
}

export function terminalUrl(sessionId: string, canType: boolean): string {
  const url = new URL(`/v1/sessions/${encodeURIComponent(sessionId)}/terminal/ws`, location.origin);
  url.protocol = url.protocol.replace("http", "ws");
  if (canType) {
    url.searchParams.set("write", "true");
  }
  return url.href;
}
