// Reads the steps of a session and whether it plays. The feed marks them as outdated with their session.
import { queryOptions } from "@tanstack/react-query";

import { api, required } from "@/api/client";
import { keys } from "@/api/keys";
import { addMessageContent, type Step } from "./model";

const PAGE_SIZE = 1000;
/** The newest messages whose text is read: those that wait, and those that ended last. */
const MESSAGES = 200;
/** A longer queue is cut at its beginning of ended steps; nothing else in it is lost. */
const MAX_PAGES = 10;

export const stepsKey = (sessionId: string) => [...keys.session(sessionId), "steps"] as const;
export const playbackKey = (sessionId: string) => [...keys.session(sessionId), "playback"] as const;

export function stepsQuery(sessionId: string) {
  return queryOptions({
    queryKey: stepsKey(sessionId),
    queryFn: async ({ signal }) => {
      const steps: Step[] = [];
      let page: string | null = null;
      for (let count = 0; count < MAX_PAGES; count += 1) {
        const found: { data: Step[]; next_page: string | null } = required(
          await api.GET("/v1/sessions/{session_id}/steps", {
            params: { path: { session_id: sessionId }, query: { limit: PAGE_SIZE, page } },
            signal,
          }),
        );
        steps.push(...found.data);
        page = found.next_page;
        if (page === null) {
          break;
        }
      }
      if (!steps.some((step) => step.is_message)) {
        return steps;
      }
      const messages = required(
        await api.GET("/v1/sessions/{session_id}/events", {
          params: {
            path: { session_id: sessionId },
            query: { "types[]": ["user.message"], order: "desc", limit: MESSAGES },
          },
          signal,
        }),
      );
      return addMessageContent(steps, messages.data);
    },
  });
}

export function playbackQuery(sessionId: string) {
  return queryOptions({
    queryKey: playbackKey(sessionId),
    queryFn: async ({ signal }) =>
      required(
        await api.GET("/v1/sessions/{session_id}/playback", {
          params: { path: { session_id: sessionId } },
          signal,
        }),
      ),
  });
}
