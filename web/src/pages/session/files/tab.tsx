// Files of a session.
import type { Session } from "@/api/session-state";

export default function FilesTab({ session }: { session: Session }) {
  return <p className="p-4 text-muted">{session.id}</p>;
}
