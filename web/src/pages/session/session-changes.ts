// Changes to a session as a whole, and what they say when they fail.
import type { QueryClient } from "@tanstack/react-query";

import { api, request } from "@/api/client";
import { keys } from "@/api/keys";
import type { Session } from "@/api/session-state";
import { showToast } from "@/design/components/toast";

import { interrupt } from "./conversation/send";

export function createSessionChanges(queries: QueryClient, session: Session) {
  const params = { path: { session_id: session.id } };

  /** Returns whether it succeeded. */
  async function change(failure: string, send: () => Promise<unknown>, done?: string): Promise<boolean> {
    try {
      await send();
      if (done !== undefined) {
        showToast({ title: done, timeout: 2_500 });
      }
      return true;
    } catch (error) {
      showToast({
        title: failure,
        description: error instanceof Error ? error.message : String(error),
        tone: "failed",
      });
      return false;
    } finally {
      void queries.invalidateQueries({ queryKey: keys.session(session.id) });
      void queries.invalidateQueries({ queryKey: keys.sessions });
    }
  }

  return {
    pause: () =>
      change("The session was not paused", () => api.POST("/v1/sessions/{session_id}/pause", { params }), "Paused"),
    play: () =>
      change("The session does not play", () => api.POST("/v1/sessions/{session_id}/play", { params }), "Playing"),
    interrupt: () => change("The turn was not interrupted", () => interrupt(session.id), "Interrupted"),
    rename: (title: string) => {
      // At once in the page; taken back by the next read if the server refuses.
      queries.setQueryData<Session>(keys.session(session.id), (before) =>
        before === undefined ? undefined : { ...before, title: title === "" ? null : title },
      );
      return change("The session was not renamed", () =>
        request("POST", `/v1/sessions/${encodeURIComponent(session.id)}`, {
          body: { title: title === "" ? null : title },
        }),
      );
    },
    pin: (isPinned: boolean) =>
      change(
        isPinned ? "The session was not pinned" : "The session was not unpinned",
        () =>
          isPinned
            ? api.PUT("/v1/sessions/{session_id}/pin", { params })
            : api.DELETE("/v1/sessions/{session_id}/pin", { params }),
        isPinned ? "Pinned to the sidebar" : "Unpinned",
      ),
    end: () =>
      change(
        "The session was not ended",
        () => request("POST", `/v1/sessions/${encodeURIComponent(session.id)}/end`, { body: {} }),
        "Ended",
      ),
    archive: () =>
      change(
        "The session was not archived",
        () => api.POST("/v1/sessions/{session_id}/archive", { params }),
        "Archived",
      ),
    remove: () =>
      change("The session was not deleted", () => api.DELETE("/v1/sessions/{session_id}", { params }), "Deleted"),
  };
}

export type SessionChanges = ReturnType<typeof createSessionChanges>;
