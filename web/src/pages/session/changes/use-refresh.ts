// Reads again what the feed says has changed. While an agent works, not more often than the page can follow.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useEffectEvent } from "react";

import { EventStream } from "@/api/event-stream";
import { onFeedChange } from "@/api/feed";
import type { FeedChange } from "@/api/keys";
import { changesKeys } from "./queries";

const SHORTEST_PAUSE_MS = 300;
/** Files change with results of tools, which are in the session's stream, and with the ends of turns. */
const RESULT_TYPES = ["agent.tool_result", "agent.mcp_tool_result"];
const CHANGES_TURNS = /^session\.status_|^session\.error$|^user\./;
const RUNNING_PAUSE_MS = 2_000;

/** Calls `refresh` after changes that match: at once after a quiet time, otherwise at most every `pause` milliseconds. */
export function useFeedRefresh(
  sessionId: string,
  matches: (change: FeedChange) => boolean,
  refresh: () => void,
  pause = SHORTEST_PAUSE_MS,
): void {
  const doesMatch = useEffectEvent(matches);
  const run = useEffectEvent(refresh);
  const getPause = useEffectEvent(() => pause);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let lastRun = 0;
    const end = onFeedChange((change) => {
      if (change.session_id !== sessionId || timer !== undefined || !doesMatch(change)) {
        return;
      }
      timer = setTimeout(
        () => {
          timer = undefined;
          lastRun = Date.now();
          run();
        },
        Math.max(SHORTEST_PAUSE_MS, lastRun + getPause() - Date.now()),
      );
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [sessionId]);
}

/** Keeps the turns, the summaries and the comments of a session up to date. */
export function useChangesRefresh(sessionId: string, isRunning: boolean): void {
  const queries = useQueryClient();
  function refresh(): void {
    void queries.invalidateQueries({ queryKey: changesKeys.turns(sessionId) });
    void queries.invalidateQueries({ queryKey: changesKeys.summaries(sessionId) });
  }
  useFeedRefresh(
    sessionId,
    (change) => change.type.startsWith("session_comment"),
    () => void queries.invalidateQueries({ queryKey: changesKeys.comments(sessionId) }),
  );
  useFeedRefresh(sessionId, (change) => CHANGES_TURNS.test(change.type), refresh);
  useResults(isRunning ? sessionId : null, refresh);
}

/** While a turn runs, calls `refresh` after results of tools. */
function useResults(sessionId: string | null, refresh: () => void): void {
  const run = useEffectEvent(refresh);
  useEffect(() => {
    if (sessionId === null) {
      return undefined;
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stream = new EventStream({
      url: `/v1/sessions/${encodeURIComponent(sessionId)}/events/stream`,
      onFrame: (frame) => {
        if (RESULT_TYPES.includes(frame.event)) {
          timer ??= setTimeout(() => {
            timer = undefined;
            run();
          }, RUNNING_PAUSE_MS);
        }
      },
    });
    stream.open();
    return () => {
      clearTimeout(timer);
      stream.close();
    };
  }, [sessionId]);
}
