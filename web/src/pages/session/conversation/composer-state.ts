// Why a person cannot write to a session now.
import type { Session } from "@/api/session-state";

/** The reason, in a sentence. Null: messages are accepted. */
export function refusalOf(session: Pick<Session, "archived_at" | "end">, mayOperate: boolean): string | null {
  if (!mayOperate) {
    return "You can read this session. Your role does not permit to write to it.";
  }
  if (session.archived_at !== null) {
    return "This session is archived. Fork it to continue.";
  }
  return session.end == null ? null : "This session has ended. Fork it to continue.";
}
