// The steps of a session that wait, as far as the conversation needs them.
import { queryOptions, useQuery } from "@tanstack/react-query";

import { api, required } from "@/api/client";
import { keys } from "@/api/keys";

/** How many are read. */
export const MAX_QUEUE = 100;
const EMPTY: readonly string[] = [];

/** The ids of the steps that wait, in the order in which they start. */
export function queueQuery(sessionId: string) {
  return queryOptions({
    queryKey: [...keys.session(sessionId), "steps", "pending"],
    queryFn: async ({ signal }) =>
      required(
        await api.GET("/v1/sessions/{session_id}/steps", {
          params: { path: { session_id: sessionId }, query: { limit: MAX_QUEUE, "states[]": ["pending"] } },
          signal,
        }),
      ).data.map((step) => step.id),
  });
}

export function useQueue(sessionId: string): readonly string[] {
  return useQuery(queueQuery(sessionId)).data ?? EMPTY;
}
