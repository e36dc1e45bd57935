// How much is before a message that is sent now, and where to change it.
import { Link } from "@tanstack/react-router";

import type { Session } from "@/api/session-state";
import { MAX_QUEUE, useQueue } from "./queue";

export function QueueState({ session, isBusy }: { session: Session; isBusy: boolean }) {
  const waiting = useQueue(session.id).length;
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
      {waiting === 0 ? (
        "Starts when the turn has ended"
      ) : (
        <Link
          to="/sessions/$sessionId"
          params={{ sessionId: session.id }}
          search={{ tab: "steps" }}
          className="underline hover:text-text"
        >
          {count(waiting)} in the queue
        </Link>
      )}
    </span>
  );
}

function count(steps: number): string {
  return steps === 1 ? "1 step" : `${steps >= MAX_QUEUE ? `${MAX_QUEUE} or more` : steps} steps`;
}
