// What the tab shows: the diff of the range, tree and state in the address, with its files as they arrive.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { type Session } from "@/api/session-state";
import { type DiffParameters, type FileSummary, patchUrl, summaryQuery, type TreeDiff, turnsQuery } from "./queries";
import { type ChangeState, type DiffRange, isFinal, parseRange, rangeParameters, type Turn } from "./ranges";
import { usePatch } from "./use-patch";
import { useChangesRefresh } from "./use-refresh";

const NO_TURNS: readonly Turn[] = [];
const NO_FILES: readonly FileSummary[] = [];

export interface ChangesSearch {
  turn?: string | undefined;
  project?: string | undefined;
  state?: ChangeState | undefined;
}

export function useChanges(session: Session, search: ChangesSearch) {
  useChangesRefresh(session.id, session.state === "running");
  const turnsResult = useQuery(turnsQuery(session.id));
  const turns = turnsResult.data ?? NO_TURNS;
  const range: DiffRange = parseRange(search.turn);
  const parameters: DiffParameters | null = rangeParameters(range, turns);
  const summary = useQuery(summaryQuery(session.id, parameters, { isFinal: isFinal(range, turns) }));
  const trees = summary.data?.trees ?? [];
  const tree: TreeDiff | undefined =
    trees.find((one) => one.project_id === search.project) ?? trees.find((one) => one.files.length > 0) ?? trees[0];
  const states = tree?.states ?? null;
  const state = states === null ? undefined : search.state;
  const listed = state === undefined || states === null ? (tree?.files ?? NO_FILES) : states[state].files;

  // A session with one tree has one patch, which is read while the summary is.
  const projectId = tree === undefined ? (session.project_ids[0] ?? null) : tree.project_id;
  const isEmpty =
    tree === undefined ? session.project_ids.length > 1 || search.state !== undefined : listed.length === 0;
  const patchParameters: DiffParameters | null =
    parameters === null || isEmpty
      ? null
      : {
          ...parameters,
          ...(projectId === null ? {} : { project_id: projectId }),
          ...(state === undefined ? {} : { state }),
        };
  const firstReadAt = useFirst(summary.dataUpdatedAt);
  const patch = usePatch(
    patchParameters === null ? null : patchUrl(session.id, patchParameters),
    String(firstReadAt === summary.dataUpdatedAt ? 0 : summary.dataUpdatedAt),
  );
  return {
    turns,
    turnsError: turnsResult.error,
    range,
    /** The address names a turn that the session does not have. */
    isUnknownRange: parameters === null && turnsResult.isSuccess,
    summary,
    trees,
    tree,
    states,
    state,
    /** From the summary, which is there before the patch. */
    listed,
    patch,
    /** Null: there is nothing to download. */
    downloadUrl: patchParameters === null ? null : patchUrl(session.id, patchParameters),
    /** A comment needs the whole diff of a turn or of the session. */
    commentScope:
      state !== undefined || range.kind === "turns"
        ? null
        : { turnId: range.kind === "turn" ? range.turnId : null, projectId: tree?.project_id ?? null },
  };
}

export type Changes = ReturnType<typeof useChanges>;

/** The first value other than 0: the patch is not read again because the first summary arrived. */
function useFirst(value: number): number {
  const [first, setFirst] = useState(value);
  if (first === 0 && value !== 0) {
    setFirst(value);
    return value;
  }
  return first === 0 ? value : first;
}
