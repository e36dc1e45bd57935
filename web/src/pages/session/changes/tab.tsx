// Changes of a session.
import type { Session } from "@/api/session-state";

export default function ChangesTab({ session }: { session: Session }) {
  return <p className="p-4 text-muted">{session.id}</p>;
}
