// Reads the tree of sessions below a session, level by level, and flattens what is unfolded into rows.
import { useQueries, useQuery } from "@tanstack/react-query";

import type { Session } from "@/api/session-state";
import { stepsQuery } from "../steps/queries";
import { childrenQuery, subagentsQuery } from "./queries";
import { arrangeGroups, type ChildGroup, findChosen, type Thread } from "./tree";

export type TreeRow =
  | { kind: "subagent"; key: string; thread: Thread; level: number }
  | { kind: "group"; key: string; group: ChildGroup; level: number }
  | { kind: "session"; key: string; session: Session; level: number; isChosen: boolean; hasChildren: boolean | null };

/** Sessions may start sessions down to this level; the server's limit is 3 by default. */
const MAX_LEVELS = 6;
/** In a larger group, the children of a session are read when it is unfolded. */
const EAGER_SESSIONS = 30;

export function useTree(root: Session, folded: ReadonlySet<string>, unfolded: ReadonlySet<string>) {
  const top = useQuery(childrenQuery(root.id));
  const { data: threads = [] } = useQuery(subagentsQuery(root.id));
  const { data: steps = [] } = useQuery(stepsQuery(root.id));
  const isEager = (top.data?.length ?? 0) <= EAGER_SESSIONS;
  const wanted = (top.data ?? []).filter((child) => isEager || unfolded.has(child.id)).map((child) => child.id);
  const deeper = useDescendants(wanted, unfolded);

  function add(rows: TreeRow[], children: readonly Session[], level: number): void {
    const groups = arrangeGroups(children, level === 0 ? steps : []);
    for (const group of groups) {
      const isShown = group.members.length > 1 || group.step !== null;
      if (isShown) {
        rows.push({ kind: "group", key: group.id, group, level });
      }
      if (isShown && folded.has(group.id)) {
        continue;
      }
      const chosen = findChosen(group);
      const own = level + (isShown ? 1 : 0);
      for (const session of group.members) {
        const known = deeper.get(session.id);
        rows.push({
          kind: "session",
          key: session.id,
          session,
          level: own,
          isChosen: session.id === chosen,
          hasChildren: known === undefined ? null : known.length > 0,
        });
        if (known !== undefined && !folded.has(session.id) && level < MAX_LEVELS) {
          add(rows, known, own + 1);
        }
      }
    }
  }
  const rows: TreeRow[] = threads.map((thread) => ({ kind: "subagent", key: thread.id, thread, level: 0 }));
  add(rows, top.data ?? [], 0);
  return { rows, isPending: top.isPending, error: top.error, refetch: top.refetch };
}

/** The children of the given sessions, and of theirs. */
function useDescendants(ids: readonly string[], unfolded: ReadonlySet<string>): ReadonlyMap<string, Session[]> {
  const first = useQueries({ queries: ids.map(childrenQuery) });
  const second = first.flatMap((result) => result.data ?? []).map((child) => child.id);
  const below = useQueries({ queries: second.map(childrenQuery) });
  const further = [...unfolded].filter((id) => !ids.includes(id) && !second.includes(id));
  const rest = useQueries({ queries: further.map(childrenQuery) });
  const found = new Map<string, Session[]>();
  for (const [keys, results] of [
    [ids, first],
    [second, below],
    [further, rest],
  ] as const) {
    keys.forEach((id, index) => {
      const data = results[index]?.data;
      if (data !== undefined) {
        found.set(id, data);
      }
    });
  }
  return found;
}
