// The line above the diff of a file: what happened to it, and marking it as viewed.
import { ChevronDown, ChevronRight, MessageSquare } from "lucide-react";

import { Checkbox } from "@/design/components/checkbox";
import { CopyButton } from "@/design/components/copy";
import { SafeText } from "@/design/text/text";
import { Counts, KindMark, PathText } from "./file-marks";
import type { FileChange } from "./parse-file";

interface FileHeaderProps {
  file: FileChange;
  isCollapsed: boolean;
  commentCount: number;
  onToggle: () => void;
  /** Without it, the file cannot be marked as viewed. */
  view?: { isViewed: boolean; onView: (isViewed: boolean) => void };
}

export function FileHeader({ file, isCollapsed, commentCount, onToggle, view }: FileHeaderProps) {
  const notes = describeNotes(file);
  return (
    <div className="flex h-11 items-center gap-2 border-y bg-surface pr-3 pl-1 font-sans text-base whitespace-normal">
      <button
        type="button"
        aria-expanded={!isCollapsed}
        aria-label={`${isCollapsed ? "Show" : "Hide"} the changes of ${file.path}`}
        className="flex size-8 shrink-0 items-center justify-center rounded-md text-muted hover:bg-hover max-md:size-11"
        onClick={onToggle}
      >
        {isCollapsed ? <ChevronRight className="size-4" /> : <ChevronDown className="size-4" />}
      </button>
      <KindMark kind={file.kind} />
      <span className="flex min-w-0 items-center" title={file.path}>
        {file.oldPath !== null && (
          <>
            <SafeText className="min-w-0 truncate font-mono text-sm text-muted">{file.oldPath}</SafeText>
            <span className="px-1 text-muted" aria-label="renamed to">
              →
            </span>
          </>
        )}
        <PathText path={file.path} />
      </span>
      <CopyButton text={file.path} label="the path" className="shrink-0 max-md:hidden" />
      {notes !== null && <span className="min-w-0 flex-1 truncate text-sm text-waiting max-md:hidden">{notes}</span>}
      <span className="ml-auto flex shrink-0 items-center gap-3">
        {commentCount > 0 && (
          <span className="flex items-center gap-1 text-sm text-muted" aria-label={`${commentCount} comments`}>
            <MessageSquare aria-hidden className="size-3.5" />
            {commentCount}
          </span>
        )}
        <Counts added={file.added} deleted={file.deleted} isBinary={file.isBinary} />
        {view !== undefined && (
          <>
            <Checkbox checked={view.isViewed} onCheckedChange={view.onView} aria-label={`Viewed ${file.path}`} />
            <span aria-hidden className="-ml-2 text-sm text-muted max-md:hidden">
              Viewed
            </span>
          </>
        )}
      </span>
    </div>
  );
}

function describeNotes(file: FileChange): string | null {
  const notes: string[] = [];
  if (file.isBinary) {
    notes.push("Binary file: not shown");
  } else if (file.diff.hunks.length === 0) {
    notes.push(file.kind === "renamed" ? "Renamed without changes" : "No changed lines");
  }
  if (file.modes !== null) {
    notes.push(`Mode ${file.modes}`);
  }
  if (file.hiddenCharacters > 0) {
    notes.push(
      file.hiddenCharacters === 1
        ? "1 hidden character, shown in ⟦⟧"
        : `${file.hiddenCharacters.toLocaleString()} hidden characters, shown in ⟦⟧`,
    );
  }
  if (file.cutLines > 0) {
    notes.push(file.cutLines === 1 ? "1 very long line is cut" : `${file.cutLines} very long lines are cut`);
  }
  return notes.length === 0 ? null : notes.join(" · ");
}
