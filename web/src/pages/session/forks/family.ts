// The sessions that share a history: the ancestors of a session, their forks and forks of those, as rows of a graph.
import type { Session } from "@/api/session-state";

export interface FamilyMember {
  session: Session;
  parentId: string | null;
}

export interface Family {
  /** The oldest ancestor that the caller can see is the first. */
  members: FamilyMember[];
  /** The oldest visible session is a fork of one that was deleted, or that the caller cannot see. */
  hasHiddenRoot: boolean;
  /** There are more than the page reads. */
  isCut: boolean;
}

export interface GraphRow {
  session: Session;
  level: number;
  /** For each level to the left, whether a line passes: a later sibling follows there. */
  lines: boolean[];
  isLast: boolean;
  hasForks: boolean;
}

/** Parents before their forks, forks in the order of their fork point, then of their age. */
export function layOut(family: Family): GraphRow[] {
  const forks = new Map<string | null, FamilyMember[]>();
  for (const member of family.members) {
    forks.set(member.parentId, [...(forks.get(member.parentId) ?? []), member]);
  }
  const rows: GraphRow[] = [];
  // `lines` has an entry for each level above the parent: whether its line goes on below this row.
  function add(parentId: string | null, level: number, lines: boolean[]): void {
    const siblings = [...(forks.get(parentId) ?? [])].sort(compareForks);
    siblings.forEach((member, index) => {
      const isLast = index === siblings.length - 1;
      rows.push({ session: member.session, level, lines, isLast, hasForks: forks.has(member.session.id) });
      add(member.session.id, level + 1, level === 0 ? [] : [...lines, !isLast]);
    });
  }
  add(null, 0, []);
  return rows;
}

function compareForks({ session: first }: FamilyMember, { session: second }: FamilyMember): number {
  return (
    (first.forked_from?.position ?? 0) - (second.forked_from?.position ?? 0) ||
    first.created_at.localeCompare(second.created_at) ||
    (first.id < second.id ? -1 : 1)
  );
}

/** The number of the parent's turn at which the fork starts. 0: before its first own turn. Null: not known. */
export function forkTurn(position: number, turns: readonly { first_seq: number }[] | undefined): number | null {
  return turns === undefined ? null : turns.filter((turn) => turn.first_seq <= position).length;
}

export function describeForkPoint(turn: number | null): string {
  if (turn === null) {
    return "";
  }
  return turn === 0 ? "forked before its first turn" : `forked at turn ${turn}`;
}
