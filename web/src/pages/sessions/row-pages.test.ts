import { describe, expect, it, vi } from "vitest";

import type { ListedSession } from "@/api/queries/sessions";
import { RowPages } from "./row-pages";
import { positionOf } from "./rows";

const SIZE = 3;

function session(number: number, title = `session ${number}`): ListedSession {
  return {
    id: `sesn_${String(number).padStart(4, "0")}`,
    title,
    created_at: `2026-01-01T00:00:00.${String(number).padStart(6, "0")}Z`,
    activity: { state: "completed", reason: null, message: null, since: null },
    usage: { input_tokens: 1, output_tokens: 1 },
    agent: { name: "agent" },
    projects: [],
    is_pinned: false,
  } as unknown as ListedSession;
}

/** A server with the newest session first. A cursor is the position of the last row before the page. */
function serve(sessions: ListedSession[]) {
  const read = vi.fn((_filters: unknown, cursor: string | null) => {
    const sorted = sessions.toSorted((one, other) => (one.id < other.id ? 1 : -1));
    const rest = cursor === null ? sorted : sorted.filter((one) => one.id < cursor);
    const data = rest.slice(0, SIZE);
    return Promise.resolve({ data, next_page: rest.length > SIZE ? (data.at(-1)?.id ?? null) : null });
  });
  return { read, sessions };
}

const settle = () => new Promise((resolve) => setTimeout(resolve));
const titles = (pages: RowPages) => pages.getSnapshot().rows.map((row) => row.title);

async function open(count: number) {
  const server = serve(Array.from({ length: count }, (_, index) => session(index)));
  const pages = new RowPages({}, server.read);
  pages.subscribe(() => undefined);
  pages.show(0, 20);
  while (pages.getSnapshot().hasMore) {
    await pages.loadMore();
  }
  return { ...server, pages };
}

describe("RowPages", () => {
  it("reads all pages, one after the other, each once", async () => {
    const { pages, read } = await open(8);
    expect(titles(pages)).toHaveLength(8);
    expect(read).toHaveBeenCalledTimes(3);
  });

  it("shows new sessions at the top and keeps all others", async () => {
    const { pages, sessions } = await open(8);
    const before = pages.getSnapshot().rows;
    for (let number = 8; number < 13; number += 1) {
      sessions.push(session(number));
    }
    pages.markPlaceStale(positionOf("2026-01-01T00:00:00.000012Z", "sesn_0012"));
    await settle();
    expect(titles(pages)).toEqual(Array.from({ length: 13 }, (_, index) => `session ${12 - index}`));
    expect(pages.getSnapshot().rows[5]).toBe(before[0]);
  });

  it("changes one row, and reads only its page", async () => {
    const { pages, sessions, read } = await open(8);
    read.mockClear();
    sessions[3] = session(3, "changed");
    expect(pages.markStale(["sesn_0003", "sesn_9999"])).toEqual(["sesn_9999"]);
    await settle();
    expect(titles(pages)[4]).toBe("changed");
    expect(read).toHaveBeenCalledTimes(1);
  });

  it("removes what no longer belongs to the list, without duplicates", async () => {
    const { pages, sessions } = await open(8);
    sessions.splice(5, 1);
    sessions.splice(0, 1);
    pages.markStale(["sesn_0005", "sesn_0000"]);
    await settle();
    expect(titles(pages)).toEqual([7, 6, 4, 3, 2, 1].map((number) => `session ${number}`));
  });

  it("does not read pages that are not in view until they are", async () => {
    const { pages, sessions, read } = await open(60);
    pages.show(0, 2);
    await settle();
    read.mockClear();
    sessions[1] = session(1, "changed");
    pages.markStale(["sesn_0001"]);
    await settle();
    expect(read).not.toHaveBeenCalled();
    pages.show(55, 59);
    await settle();
    expect(titles(pages)[58]).toBe("changed");
  });

  it("keeps its rows when a page cannot be read, and says so", async () => {
    const { pages, read } = await open(2);
    read.mockRejectedValueOnce(new Error("offline"));
    pages.markAllStale();
    await settle();
    expect(titles(pages)).toHaveLength(2);
    const empty = new RowPages({}, () => Promise.reject(new Error("offline")));
    await empty.loadMore();
    expect(empty.getSnapshot()).toMatchObject({ isLoaded: false, isLoading: false, error: new Error("offline") });
  });
});
