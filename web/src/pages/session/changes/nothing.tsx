// What the tab says when there is no change to show.
import type { Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import type { Changes } from "./use-changes";

interface NothingProps {
  session: Session;
  changes: Changes;
  onAll: () => void;
}

export function Nothing({ session, changes, onAll }: NothingProps) {
  if (changes.isUnknownRange) {
    return (
      <EmptyState title="This session has no such turn" action={<Button onClick={onAll}>Show all changes</Button>}>
        The link may be old or incomplete.
      </EmptyState>
    );
  }
  if (changes.range.kind !== "all" || changes.state !== undefined) {
    return (
      <EmptyState title="No changes here" action={<Button onClick={onAll}>Show all changes</Button>}>
        {changes.state === undefined
          ? "No file was changed in these turns."
          : `No file of these turns is ${changes.state}.`}
      </EmptyState>
    );
  }
  return session.state === "running" ? (
    <EmptyState title="No changes yet">Files appear here as the agent changes them.</EmptyState>
  ) : (
    <EmptyState title="No changes" command={`footplate diff ${session.id}`}>
      The agent has not changed a file. What it changes appears here, turn by turn. This command shows the same.
    </EmptyState>
  );
}

/** Files that are in the directory but in no snapshot. */
export function LeftOut({ paths }: { paths: readonly string[] }) {
  if (paths.length === 0) {
    return null;
  }
  return (
    <details className="m-4 rounded-md border px-3 py-2 font-sans text-base">
      <summary className="text-muted">
        {paths.length === 1 ? "1 file was" : `${paths.length.toLocaleString()} files were`} not compared
      </summary>
      <ul className="mt-2 max-h-60 overflow-auto font-mono text-sm">
        {paths.map((path) => (
          <li key={path} className="break-all">
            <bdi>{path}</bdi>
          </li>
        ))}
      </ul>
    </details>
  );
}
