// The log of a session for a component: loaded, followed while the component is mounted, and kept for the next visit.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";

import type { StreamState } from "@/api/event-stream";
import { keys } from "@/api/keys";
import { useSessionStream } from "@/api/session-stream";

import { type LogSnapshot, SessionLog } from "./session-log";

const KEPT_LOGS = 4;
/** Tokens and cost are read again at most this often. */
const REFRESH_MS = 750;
const CHANGES_TOTALS = new Set(["span.model_request_end", "session.status_idle", "session.status_running"]);

const logs = new Map<string, SessionLog>();

/** The log of the session, which stays in memory for the sessions that were opened last. */
export function sessionLog(sessionId: string): SessionLog {
  const known = logs.get(sessionId);
  const log = known ?? new SessionLog(`/v1/sessions/${encodeURIComponent(sessionId)}/events`);
  logs.delete(sessionId);
  logs.set(sessionId, log);
  for (const id of logs.keys()) {
    if (logs.size > KEPT_LOGS) {
      logs.delete(id);
    }
  }
  return log;
}

export function useSessionLog(sessionId: string): LogSnapshot & { log: SessionLog; streamState: StreamState } {
  const log = useMemo(() => sessionLog(sessionId), [sessionId]);
  const snapshot = useSyncExternalStore(log.subscribe, log.getSnapshot);
  const queries = useQueryClient();
  const refreshing = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    void log.load();
  }, [log]);
  useEffect(
    () => () => {
      clearTimeout(refreshing.current);
      refreshing.current = undefined;
    },
    [],
  );
  const streamState = useSessionStream(sessionId, snapshot.isLoaded ? log.events.lastPosition : null, {
    onFrame: (frame) => {
      log.receive(frame);
      if (frame.kind === "event" && CHANGES_TOTALS.has(frame.data.type)) {
        refreshing.current ??= setTimeout(() => {
          refreshing.current = undefined;
          void queries.invalidateQueries({ queryKey: keys.session(sessionId), exact: true });
          void queries.invalidateQueries({ queryKey: [...keys.session(sessionId), "turns"] });
        }, REFRESH_MS);
      }
    },
    onReset: () => {
      log.reset();
    },
  });
  return { ...snapshot, log, streamState };
}
