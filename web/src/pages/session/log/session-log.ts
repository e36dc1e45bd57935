// Loads the log of one session page by page, follows it, and tells subscribers about changes once per frame.
import { request } from "@/api/client";
import type { Listing } from "@/api/contract";
import type { SessionFrame } from "@/api/session-stream";

import { EventLog } from "./event-log";
import { type LogEvent, readEvent } from "./events";
import { buildItems, type ItemCache, type LogItem } from "./items";
import { PreviewText } from "./preview-text";

const FIRST_PAGE = 300;
const PAGE = 1000;
const HIDDEN_FLUSH_MS = 250;
const PREVIEWS_END = new Set(["span.model_request_end", "session.status_idle", "session.status_rescheduled"]);

export interface Preview {
  id: string;
  type: string;
  text: PreviewText;
}

export interface LogSnapshot {
  items: readonly LogItem[];
  previews: readonly Preview[];
  isLoaded: boolean;
  error: unknown;
  hasOlder: boolean;
  isLoadingOlder: boolean;
  /** Grows with each change of the events. */
  version: number;
}

const EMPTY: LogSnapshot = {
  items: [],
  previews: [],
  isLoaded: false,
  error: null,
  hasOlder: false,
  isLoadingOlder: false,
  version: 0,
};

export class SessionLog {
  readonly events = new EventLog();
  #path: string;
  #isThread: boolean;
  #cache: ItemCache = new Map();
  #snapshot = EMPTY;
  #listeners = new Set<() => void>();
  #previewListeners = new Set<() => void>();
  #previews = new Map<string, Preview>();
  #pending: LogEvent[] = [];
  #previewsChanged = false;
  #isFlushing = false;
  #nextPage: string | null = null;
  #loading: Promise<void> | null = null;
  #older: Promise<void> | null = null;
  #previewVersion = 0;

  /** `path` is the address of the events, such as `/v1/sessions/sesn_…/events`. A thread is listed from its beginning. */
  constructor(path: string, { isThread = false }: { isThread?: boolean } = {}) {
    this.#path = path;
    this.#isThread = isThread;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  getSnapshot = (): LogSnapshot => this.#snapshot;

  /** Only the text of previews: it changes up to once per frame. */
  subscribeToPreviews = (listener: () => void): (() => void) => {
    this.#previewListeners.add(listener);
    return () => this.#previewListeners.delete(listener);
  };

  getPreviewVersion = (): number => this.#previewVersion;

  /** Loads the newest page, once. */
  load(): Promise<void> {
    this.#loading ??= (this.#isThread ? this.#loadThread() : this.#loadPage(FIRST_PAGE))
      .then(() => {
        this.#change({ isLoaded: true, error: null });
      })
      .catch((error: unknown) => {
        this.#loading = null;
        this.#change({ error });
      });
    return this.#loading;
  }

  loadOlder(): Promise<void> {
    if (!this.#snapshot.hasOlder) {
      return Promise.resolve();
    }
    if (this.#older === null) {
      this.#change({ isLoadingOlder: true });
      this.#older = this.#loadPage(PAGE)
        .then(
          () => {
            this.#change({ isLoadingOlder: false, error: null });
          },
          (error: unknown) => {
            this.#change({ isLoadingOlder: false, error });
          },
        )
        .finally(() => {
          this.#older = null;
        });
    }
    return this.#older;
  }

  /** Loads older pages until the condition holds. Returns whether it does. */
  async loadUntil(isReached: () => boolean): Promise<boolean> {
    await this.load();
    while (!isReached()) {
      if (!this.#snapshot.hasOlder || this.#snapshot.error !== null) {
        return false;
      }
      await this.loadOlder();
    }
    return true;
  }

  /** Everything must be read again, because the server no longer has the position. */
  reset(): void {
    this.events.clear();
    this.#cache.clear();
    this.#previews.clear();
    this.#pending = [];
    this.#loading = null;
    this.#nextPage = null;
    void this.load();
  }

  receive(frame: SessionFrame): void {
    if (frame.kind === "event") {
      this.#pending.push(readEvent(frame.data, frame.position));
    } else if (frame.kind === "preview_start") {
      this.#startPreview(frame);
    } else {
      this.#growPreview(frame);
    }
    this.#scheduleFlush();
  }

  #startPreview(frame: SessionFrame): void {
    const started = frame.data["event"] as { id?: string; type?: string } | undefined;
    if (started?.id === undefined || started.type === undefined || this.events.has(started.id)) {
      return;
    }
    if (this.#previews.has(started.id) && (frame.offset ?? 0) > 0) {
      return; // a resumed stream continues it
    }
    for (const [id, preview] of this.#previews) {
      if (preview.type === started.type) {
        this.#previews.delete(id); // its worker was lost, and another one begins again
      }
    }
    this.#previews.set(started.id, { id: started.id, type: started.type, text: new PreviewText() });
    this.#previewsChanged = true;
  }

  #growPreview(frame: SessionFrame): void {
    const id = frame.data["event_id"];
    const delta = frame.data["delta"] as { content?: { text?: unknown } } | undefined;
    const text = delta?.content?.text;
    if (typeof id === "string" && typeof text === "string") {
      this.#previews.get(id)?.text.append(text);
    }
  }

  #scheduleFlush(): void {
    if (this.#isFlushing) {
      return;
    }
    this.#isFlushing = true;
    // A hidden page has no frames.
    if (document.visibilityState === "visible") {
      requestAnimationFrame(this.#flush);
    } else {
      setTimeout(this.#flush, HIDDEN_FLUSH_MS);
    }
  }

  #flush = (): void => {
    this.#isFlushing = false;
    const pending = this.#pending;
    this.#pending = [];
    for (const event of pending) {
      this.#previewsChanged = this.#previews.delete(event.id) || this.#previewsChanged;
      if (PREVIEWS_END.has(event.type) && this.#previews.size > 0) {
        this.#previews.clear();
        this.#previewsChanged = true;
      }
    }
    this.#previewVersion += 1;
    if (pending.length > 0 || this.#previewsChanged) {
      this.#previewsChanged = false;
      if (pending.length > 0) {
        this.events.add(pending);
      }
      this.#publish();
    }
    for (const listener of this.#previewListeners) {
      listener();
    }
  };

  async #loadThread(): Promise<void> {
    do {
      await this.#loadPage(PAGE);
    } while (this.#nextPage !== null);
  }

  async #loadPage(limit: number): Promise<void> {
    const page = await request<Listing<Record<string, unknown>>>("GET", this.#path, {
      query: { limit, page: this.#nextPage, ...(this.#isThread ? {} : { order: "desc", extensions: true }) },
    });
    this.#nextPage = page.next_page;
    this.events.add(page.data.map((event) => readEvent(event)));
    this.#publish();
  }

  #publish(): void {
    this.#change({
      items: buildItems(this.events.list(), { cache: this.#cache, isThread: this.#isThread }),
      previews: [...this.#previews.values()],
      hasOlder: this.#nextPage !== null,
      version: this.#snapshot.version + 1,
    });
  }

  #change(change: Partial<LogSnapshot>): void {
    this.#snapshot = { ...this.#snapshot, ...change };
    for (const listener of this.#listeners) {
      listener();
    }
  }
}
