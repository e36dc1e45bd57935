// The commits that a merge or a push would deliver.
import { GitCommitHorizontal } from "lucide-react";
import type { ReactNode } from "react";

import type { Session } from "@/api/session-state";
import { SafeText } from "@/design/text/text";
import { Counts } from "./file-marks";
import type { TreeDiff } from "./queries";
import type { Turn } from "./ranges";
import type { Changes } from "./use-changes";

type Base = Session["bases"][string] | undefined;

/** The agent's commit at the end of each turn, if it made one in that turn. */
export function listCommits(
  turns: readonly Turn[],
  projectId: string,
  base: string | null,
): { commit: string; turn: number }[] {
  const found: { commit: string; turn: number }[] = [];
  let last = base;
  turns.forEach((turn, index) => {
    const commit = turn.commits[projectId] ?? turn.commit;
    if (commit !== null && commit !== last) {
      found.push({ commit, turn: index + 1 });
      last = commit;
    }
  });
  return found;
}

export function MergePlan({ changes, base }: { changes: Changes; base: Base }) {
  const { tree, turns } = changes;
  if (tree?.project_id == null) {
    return null;
  }
  const commits = listCommits(turns, tree.project_id, base?.commit ?? null);
  return (
    <section aria-label="What is delivered" className="flex flex-col gap-1">
      <h3 className="text-sm font-medium">What is delivered</h3>
      <ul className="divide-y rounded-md border">
        {base?.commit != null && (
          <Line
            title={
              <>
                Start:{" "}
                {base.branch === "" ? "a commit" : <SafeText className="font-mono text-sm">{base.branch}</SafeText>}
              </>
            }
            note={base.commit.slice(0, 10)}
          />
        )}
        {commits.map(({ commit, turn }) => (
          <Line key={commit} title={`Commits of the agent in turn ${turn}`} note={`up to ${commit.slice(0, 10)}`} />
        ))}
        <UncommittedLine tree={tree} />
      </ul>
      <p className="text-sm text-muted">
        It includes all turns, whichever are shown. The merge is made completely or not at all.
      </p>
    </section>
  );
}

function UncommittedLine({ tree }: { tree: TreeDiff }) {
  const { states } = tree;
  if (states === null) {
    return <Line title="A commit with what the agent did not commit" note="" />;
  }
  const parts = [states.staged, states.unstaged, states.untracked];
  const paths = new Set(parts.flatMap((part) => part.files.map((file) => file.path)));
  if (paths.size === 0) {
    return null;
  }
  return (
    <Line
      title={`A commit with ${paths.size === 1 ? "1 file that is" : `${paths.size} files that are`} not committed`}
      note={
        <Counts
          added={parts.reduce((sum, part) => sum + part.added, 0)}
          deleted={parts.reduce((sum, part) => sum + part.deleted, 0)}
        />
      }
    />
  );
}

function Line({ title, note }: { title: ReactNode; note: ReactNode }) {
  return (
    <li className="flex min-h-9 items-center gap-2 px-3 py-1">
      <GitCommitHorizontal aria-hidden className="size-4 shrink-0 text-muted" />
      <span className="min-w-0 flex-1">{title}</span>
      <span className="shrink-0 font-mono text-xs text-muted">{note}</span>
    </li>
  );
}
