// Why a caller cannot change members, keys, teams and limits.
import type { Principal } from "@/api/contract";

/** Null: the caller can. */
export function findAccessProblem(me: Pick<Principal, "permissions" | "roles" | "project_ids">): string | null {
  if (me.project_ids !== null) {
    return "You are signed in with an API key that is restricted to some projects. Such a key cannot manage members, keys, teams and limits.";
  }
  if (me.permissions.includes("manage_members")) {
    return null;
  }
  const own = me.roles.length === 0 ? "no role" : me.roles.join(", ");
  return `This needs the role admin, and you have ${own}. Ask an administrator.`;
}
