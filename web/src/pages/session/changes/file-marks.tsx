// How a changed file is shown in one line: its kind, its path, and how many lines changed.
import { cn } from "@/design/classes";
import { SafeText } from "@/design/text/text";
import type { ChangeKind } from "./parse-file";

const KINDS: Record<ChangeKind, { letter: string; title: string; color: string }> = {
  added: { letter: "A", title: "Added", color: "text-success" },
  modified: { letter: "M", title: "Modified", color: "text-waiting" },
  deleted: { letter: "D", title: "Deleted", color: "text-failed" },
  renamed: { letter: "R", title: "Renamed", color: "text-accent" },
  type_changed: { letter: "T", title: "Became another type, such as a link", color: "text-accent" },
};

export function KindMark({ kind, className }: { kind: ChangeKind; className?: string }) {
  const { letter, title, color } = KINDS[kind];
  return (
    <span title={title} className={cn("w-3 shrink-0 text-center font-mono text-sm font-semibold", color, className)}>
      <span aria-hidden>{letter}</span>
      <span className="sr-only">{title}</span>
    </span>
  );
}

/** The name is kept when the space is short; the folder is cut first. */
export function PathText({ path, className }: { path: string; className?: string }) {
  const slash = path.lastIndexOf("/") + 1;
  return (
    <span className={cn("flex min-w-0 font-mono text-sm whitespace-pre", className)}>
      {slash > 0 && <SafeText className="min-w-0 shrink-[9999] truncate text-muted">{path.slice(0, slash)}</SafeText>}
      <SafeText className="min-w-0 truncate">{path.slice(slash)}</SafeText>
    </span>
  );
}

interface CountsProps {
  added: number | null;
  deleted: number | null;
  isBinary?: boolean;
}

export function Counts({ added, deleted, isBinary = false }: CountsProps) {
  if (isBinary) {
    return <span className="shrink-0 text-xs text-muted">binary</span>;
  }
  return (
    <span
      className="flex shrink-0 gap-1.5 font-mono text-xs"
      aria-label={`${added ?? 0} added, ${deleted ?? 0} removed`}
    >
      <span className="text-success">+{(added ?? 0).toLocaleString()}</span>
      <span className="text-failed">−{(deleted ?? 0).toLocaleString()}</span>
    </span>
  );
}
