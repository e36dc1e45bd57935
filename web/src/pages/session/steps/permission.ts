// Why the caller cannot change the session, in words. Null: nothing prevents it.
import { useQuery } from "@tanstack/react-query";

import { meQuery } from "@/api/queries/me";
import type { Session } from "@/api/session-state";

export function useRefusal(session: Session): string | null {
  const { data: me } = useQuery(meQuery);
  if (me !== undefined && !me.permissions.includes("operate")) {
    return "You can watch. Your role does not permit to change this session.";
  }
  if (session.end != null) {
    return "The session has ended, so its queue accepts nothing more. Fork it to continue.";
  }
  return session.archived_at === null ? null : "The session is archived, so its queue accepts nothing more.";
}
