// The rows of one list, read page by page as it is scrolled, and read again where something has changed.
//
// Rows keep their place: a page is read again from its own cursor up to its old last row, so a change moves nothing else.
import type { Listing } from "@/api/contract";
import type { ListedSession, SessionFilters } from "@/api/queries/sessions";

import { type SessionRow, toRow } from "./rows";

export type ReadPage = (filters: SessionFilters, cursor: string | null) => Promise<Listing<ListedSession>>;

interface Page {
  /** The cursor that reads it. */
  cursor: string | null;
  /** The cursor of the next page. Null: it is the last one. */
  next: string | null;
  rows: readonly SessionRow[];
  isStale: boolean;
}

export interface Snapshot {
  rows: readonly SessionRow[];
  isLoaded: boolean;
  isLoading: boolean;
  hasMore: boolean;
  error: unknown;
}

const EMPTY: Snapshot = { rows: [], isLoaded: false, isLoading: false, hasMore: true, error: null };
/** Pages before and after the visible ones that are kept up to date. */
const MARGIN = 10;
const RETRY_MS = 2_000;

export class RowPages {
  readonly filters: SessionFilters;
  /** Where the list was scrolled to, for the return to it. */
  scrollTop = 0;
  #read: ReadPage;
  #pages: Page[] = [];
  #snapshot = EMPTY;
  #places = new Map<string, number>();
  #visible: [number, number] = [0, 0];
  #isRefreshing = false;
  #listeners = new Set<() => void>();

  constructor(filters: SessionFilters, read: ReadPage) {
    this.filters = filters;
    this.#read = read;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  getSnapshot = (): Snapshot => this.#snapshot;

  indexOf(id: string): number {
    return this.#places.get(id) ?? -1;
  }

  rowOf(id: string): SessionRow | undefined {
    return this.#snapshot.rows[this.indexOf(id)];
  }

  /** Reads the next page. */
  async loadMore(): Promise<void> {
    if (this.#snapshot.isLoading || !this.#snapshot.hasMore) {
      return;
    }
    this.#set({ isLoading: true, error: null });
    const cursor = this.#pages.at(-1)?.next ?? null;
    try {
      const listing = await this.#read(this.filters, cursor);
      // Not if the last page was read again meanwhile, and has grown.
      if (cursor === (this.#pages.at(-1)?.next ?? null)) {
        this.#append({ cursor, next: listing.next_page, rows: listing.data.map(toRow), isStale: false });
      }
      this.#set({ isLoading: false });
    } catch (error) {
      this.#set({ isLoading: false, error });
    }
  }

  visibleRows(): readonly SessionRow[] {
    return this.#snapshot.rows.slice(this.#visible[0], this.#visible[1] + 1);
  }

  /** Reports which rows are on the screen: stale pages are read again when they come into view. */
  show(first: number, last: number): void {
    this.#visible = [first, last];
    void this.#refresh();
  }

  /** Marks the pages that have these sessions as stale. Returns the sessions that it does not have. */
  markStale(ids: Iterable<string>): string[] {
    const unknown: string[] = [];
    for (const id of ids) {
      const page = this.#pageOf(this.indexOf(id));
      if (page === undefined) {
        unknown.push(id);
      } else {
        page.isStale = true;
      }
    }
    void this.#refresh();
    return unknown;
  }

  /** Marks the page stale where a session belongs that it does not have. */
  markPlaceStale(position: string): void {
    const isAfter = (row: SessionRow | undefined): boolean =>
      row !== undefined && (this.filters.order === "asc" ? position <= row.position : position >= row.position);
    const page = this.#pages.find((one) => isAfter(one.rows.at(-1))) ?? this.#pages.at(-1);
    // Beyond the last row that was read, it appears when the list is scrolled there.
    if (page !== undefined && (isAfter(page.rows.at(-1)) || page.next === null)) {
      page.isStale = true;
      void this.#refresh();
    }
  }

  markAllStale(): void {
    for (const page of this.#pages) {
      page.isStale = true;
    }
    void this.#refresh();
  }

  /** Changes a row at once, before the server confirms it. */
  patch(id: string, change: Partial<SessionRow>): void {
    const page = this.#pageOf(this.indexOf(id));
    if (page !== undefined) {
      page.rows = page.rows.map((row) => (row.id === id ? { ...row, ...change } : row));
      this.#publish({});
    }
  }

  #pageOf(index: number): Page | undefined {
    let end = 0;
    return index < 0 ? undefined : this.#pages.find((page) => index < (end += page.rows.length));
  }

  async #refresh(): Promise<void> {
    if (this.#isRefreshing || this.#listeners.size === 0) {
      return;
    }
    this.#isRefreshing = true;
    try {
      for (let page = this.#nextStale(); page !== undefined; page = this.#nextStale()) {
        page.isStale = false;
        try {
          await this.#reread(page);
        } catch {
          page.isStale = true;
          setTimeout(() => void this.#refresh(), RETRY_MS);
          break;
        }
      }
    } finally {
      this.#isRefreshing = false;
    }
  }

  #nextStale(): Page | undefined {
    const [first, last] = this.#visible;
    let start = 0;
    for (const page of this.#pages) {
      const end = start + page.rows.length;
      if (page.isStale && start <= last + MARGIN && end >= first - MARGIN) {
        return page;
      }
      start = end;
    }
    return undefined;
  }

  async #reread(page: Page): Promise<void> {
    const end = page.next === null ? undefined : page.rows.at(-1);
    const chunks: Page[] = [];
    let cursor = page.cursor;
    for (;;) {
      const listing = await this.#read(this.filters, cursor);
      const rows = listing.data.map(toRow);
      const past = end === undefined ? -1 : rows.findIndex((row) => this.#isPast(row, end));
      const isLast = end === undefined || past >= 0 || rows.at(-1)?.id === end.id || listing.next_page === null;
      chunks.push({
        cursor,
        next: isLast && end !== undefined && listing.next_page !== null ? page.next : listing.next_page,
        rows: past >= 0 ? rows.slice(0, past) : rows,
        isStale: false,
      });
      if (isLast) {
        break;
      }
      cursor = listing.next_page;
    }
    const place = this.#pages.indexOf(page);
    if (place >= 0) {
      this.#pages.splice(place, 1, ...chunks);
      this.#publish({});
    }
  }

  #isPast(row: SessionRow, end: SessionRow): boolean {
    return this.filters.order === "asc" ? row.position > end.position : row.position < end.position;
  }

  /** Adds a page without looking at the rows before it, of which there may be many. */
  #append(page: Page): void {
    const { length } = this.#snapshot.rows;
    const added = page.rows.filter((row) => !this.#places.has(row.id));
    added.forEach((row, index) => this.#places.set(row.id, length + index));
    this.#pages.push(added.length === page.rows.length ? page : { ...page, rows: added });
    this.#set({ rows: this.#snapshot.rows.concat(added), isLoaded: true, hasMore: page.next !== null });
  }

  #publish(change: Partial<Snapshot>): void {
    const before = this.#snapshot.rows;
    const rows: SessionRow[] = [];
    const places = new Map<string, number>();
    for (const page of this.#pages) {
      for (const row of page.rows) {
        if (!places.has(row.id)) {
          places.set(row.id, rows.length);
          const old = before[this.#places.get(row.id) ?? -1] ?? row;
          rows.push(reuse(old, row));
        }
      }
    }
    this.#places = places;
    const last = this.#pages.at(-1);
    this.#set({ ...change, rows, isLoaded: last !== undefined, hasMore: last?.next !== null });
  }

  #set(change: Partial<Snapshot>): void {
    this.#snapshot = { ...this.#snapshot, ...change };
    for (const listener of this.#listeners) {
      listener();
    }
  }
}

/** Returns the old row if nothing that is shown differs, so that it need not be rendered again. */
function reuse(old: SessionRow, row: SessionRow): SessionRow {
  for (const key in row) {
    if (old[key as keyof SessionRow] !== row[key as keyof SessionRow]) {
      return row;
    }
  }
  return old;
}
