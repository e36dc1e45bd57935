// What the fields of a member mean, in sentences.
import type { Member, Team } from "@/api/queries/people";

const METHODS: Record<Member["sign_in_methods"][number], string> = {
  oidc: "identity provider",
  api_key: "API key",
};

export function describeSignIn({ sign_in_methods: methods }: Pick<Member, "sign_in_methods">): string {
  return methods.length === 0 ? "no way yet" : methods.map((method) => METHODS[method]).join(", ");
}

export const KINDS: Record<"person" | "service", string> = { person: "person", service: "service account" };

/** The teams of each member, by its id. */
export function teamsByMember(teams: readonly Team[]): ReadonlyMap<string, string[]> {
  const found = new Map<string, string[]>();
  for (const team of teams) {
    for (const memberId of team.member_ids) {
      found.set(memberId, [...(found.get(memberId) ?? []), team.name]);
    }
  }
  return found;
}

/** What happens at once to a member that is disabled. */
export const DISABLING: readonly string[] = [
  "Its API keys are revoked for good. Its browsers are signed out, and its open streams end, within 5 seconds.",
  "Turns that run go on to their end. Calls that wait for approval stay pending.",
];

/** What becomes of the work of a disabled member. Null: it stays with the member. */
export function describeWork(successor: string | null): string {
  return successor === null
    ? "Its sessions and files stay its own, and private ones are visible only to administrators. Queued messages wait, schedules pause at their next time, and triggers fail. You can hand over the work later."
    : `Its sessions, files, schedules and triggers belong to ${successor} from now on, and queued messages run in the name of ${successor}.`;
}

export function describeEnabling(successor: string | null): string {
  return [
    "It can sign in again, and messages that wait run in its own name.",
    "Its API keys stay revoked: create new ones.",
    ...(successor === null ? [] : [`What was handed over stays with ${successor}.`]),
  ].join(" ");
}
