// The members of a team while they are changed.
import type { Member, Team } from "@/api/queries/people";

export interface TeamChange {
  add: string[];
  remove: string[];
}

/** What a list that was edited adds to the members of a team, and removes from them. */
export function teamChange(before: readonly string[], after: readonly string[]): TeamChange {
  return {
    add: after.filter((id) => !before.includes(id)),
    remove: before.filter((id) => !after.includes(id)),
  };
}

export function isChanged({ add, remove }: TeamChange): boolean {
  return add.length + remove.length > 0;
}

/** The members of a team by name. A member that was deleted has no name, so its id is shown. */
export function memberNames(team: Pick<Team, "member_ids">, members: readonly Member[]): string[] {
  const names = new Map(members.map((member) => [member.id, member]));
  return team.member_ids
    .map((id) => {
      const member = names.get(id);
      return member === undefined ? id : member.disabled_at === null ? member.name : `${member.name} (disabled)`;
    })
    .sort((one, other) => one.localeCompare(other));
}

export function countMembers(count: number): string {
  return count === 0 ? "no members" : count === 1 ? "1 member" : `${count} members`;
}
