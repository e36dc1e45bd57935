// How much is before a message that is sent now.
import { useQuery } from "@tanstack/react-query";

import { api, required } from "@/api/client";
import { keys } from "@/api/keys";
import type { Session } from "@/api/session-state";

const COUNTED = 100;

export function QueueState({ session, isBusy }: { session: Session; isBusy: boolean }) {
  const { data } = useQuery({
    queryKey: [...keys.session(session.id), "steps", "pending-count"],
    queryFn: async ({ signal }) =>
      required(
        await api.GET("/v1/sessions/{session_id}/steps", {
          params: { path: { session_id: session.id }, query: { limit: COUNTED, "states[]": ["pending"] } },
          signal,
        }),
      ),
  });
  const waiting = data?.data.length ?? 0;
  if (session.activity.state === "paused") {
    return (
      <span className="text-sm text-waiting" role="status">
        Paused: {waiting > 0 ? `${count(waiting)} and your message wait` : "your message waits"} until you play it.
      </span>
    );
  }
  if (waiting === 0 && !isBusy) {
    return null;
  }
  return (
    <span className="truncate text-sm text-muted" role="status">
      {count(waiting + (isBusy ? 1 : 0))} ahead
    </span>
  );
}

function count(steps: number): string {
  return steps === 1 ? "1 step" : `${steps >= COUNTED ? `${COUNTED} or more` : steps} steps`;
}
