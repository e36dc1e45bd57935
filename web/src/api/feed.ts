// Follows the changes of all sessions that the caller can see, and marks what they make outdated in the query cache.
import type { QueryClient, QueryKey } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";

import { EventStream, type Frame, type StreamState } from "./event-stream";
import { type FeedChange, keysOutdatedBy } from "./keys";

/** Changes within this time lead to one refresh. */
const BATCH_MS = 150;

/** Not a change of the server: everything may have changed. */
export const FEED_RESET = "feed.reset";
/** Not a change of the server: it can be reached again, so what failed is read again. */
export const FEED_LIVE = "feed.live";

let state: StreamState = "catching_up";
let since = Date.now();
const stateListeners = new Set<() => void>();
const changeListeners = new Set<(change: FeedChange) => void>();

export function openFeed(queries: QueryClient): () => void {
  const pending = new Map<string, QueryKey>();
  let timer: ReturnType<typeof setTimeout> | undefined;

  function refresh(): void {
    timer = undefined;
    for (const key of pending.values()) {
      void queries.invalidateQueries({ queryKey: key });
    }
    pending.clear();
  }

  const stream = new EventStream({
    url: "/v1/events/stream",
    onFrame: (frame: Frame) => {
      const change = frame.data as FeedChange;
      for (const listener of changeListeners) {
        listener(change);
      }
      for (const key of keysOutdatedBy(change)) {
        pending.set(JSON.stringify(key), key);
      }
      timer ??= setTimeout(refresh, BATCH_MS);
    },
    onState: (next) => {
      setState(next);
      if (next === "live") {
        void queries.refetchQueries({ type: "active", predicate: (query) => query.state.status === "error" });
        for (const listener of changeListeners) {
          listener({ type: FEED_LIVE });
        }
      }
    },
    onReset: () => {
      void queries.invalidateQueries();
      for (const listener of changeListeners) {
        listener({ type: FEED_RESET });
      }
    },
  });
  stream.open();
  return () => {
    clearTimeout(timer);
    stream.close();
  };
}

function setState(next: StreamState): void {
  state = next;
  since = Date.now();
  for (const listener of stateListeners) {
    listener();
  }
}

function subscribe(listener: () => void): () => void {
  stateListeners.add(listener);
  return () => stateListeners.delete(listener);
}

/** Whether the page shows the present: `live`, `catching_up` after a lost connection, or `offline`. */
export function useFeedState(): { state: StreamState; since: number } {
  const current = useSyncExternalStore(subscribe, () => state);
  return { state: current, since };
}

export function isFeedOffline(): boolean {
  return state === "offline";
}

/** Calls `listener` for each change, for pages that patch their cache instead of reading again. */
export function onFeedChange(listener: (change: FeedChange) => void): () => void {
  changeListeners.add(listener);
  return () => changeListeners.delete(listener);
}
