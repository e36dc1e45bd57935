// The list of changed files. It shows only the rows in view, so that thousands stay fast.
import { useVirtualizer } from "@tanstack/react-virtual";
import { Check, MessageSquare } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { cn } from "@/design/classes";
import { Input } from "@/design/components/input";
import { Counts, KindMark, PathText } from "./file-marks";
import type { ChangeKind } from "./parse-file";

export interface ListedFile {
  id: string;
  path: string;
  kind: ChangeKind;
  isBinary: boolean;
  added: number | null;
  deleted: number | null;
  commentCount: number;
  isViewed: boolean;
}

interface FileListProps {
  files: readonly ListedFile[];
  activeId: string | null;
  onOpen: (id: string) => void;
  /** The field to find a file; the shortcut focuses it. */
  fieldId: string;
  rowHeight?: number;
}

export function FileList({ files, activeId, onOpen, fieldId, rowHeight = 32 }: FileListProps) {
  const [text, setText] = useState("");
  const scroller = useRef<HTMLDivElement>(null);
  const wanted = text.trim().toLowerCase();
  const shown = wanted === "" ? files : files.filter((file) => file.path.toLowerCase().includes(wanted));
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 10,
  });
  const active = shown.findIndex((file) => file.id === activeId);
  useEffect(() => {
    if (active !== -1) {
      rows.scrollToIndex(active);
    }
    // Only when the active file changes, not when the list scrolls.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [active]);

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="p-2">
        <Input
          id={fieldId}
          type="search"
          aria-label="Find a file"
          placeholder="Find a file"
          value={text}
          onValueChange={setText}
          onKeyDown={(event) => {
            const first = shown[0];
            if (event.key === "Enter" && first !== undefined) {
              onOpen(first.id);
              event.currentTarget.blur();
            } else if (event.key === "Escape") {
              setText("");
              event.currentTarget.blur();
            }
          }}
        />
      </div>
      {shown.length === 0 && <p className="px-3 py-2 text-sm text-muted">No file matches.</p>}
      <div ref={scroller} className="min-h-0 flex-1 overflow-y-auto pb-2">
        <ul aria-label="Changed files" className="relative" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((row) => {
            const file = shown[row.index];
            return (
              file !== undefined && (
                <li
                  key={file.id}
                  className="absolute inset-x-0 px-1"
                  style={{ height: row.size, transform: `translateY(${row.start}px)` }}
                >
                  <button
                    type="button"
                    aria-current={file.id === activeId}
                    title={file.path}
                    className={cn(
                      "flex size-full items-center gap-2 rounded-md px-2 text-left outline-offset-[-2px] hover:bg-hover aria-[current=true]:bg-selected",
                      file.isViewed && "text-muted",
                    )}
                    onClick={() => {
                      onOpen(file.id);
                    }}
                  >
                    <KindMark kind={file.kind} />
                    <PathText path={file.path} className="flex-1" />
                    {file.commentCount > 0 && (
                      <span className="flex shrink-0 items-center gap-0.5 text-xs text-accent">
                        <MessageSquare aria-label="Comments" className="size-3" />
                        {file.commentCount}
                      </span>
                    )}
                    {file.isViewed && <Check aria-label="Viewed" className="size-3.5 shrink-0 text-success" />}
                    <Counts added={file.added} deleted={file.deleted} isBinary={file.isBinary} />
                  </button>
                </li>
              )
            );
          })}
        </ul>
      </div>
    </div>
  );
}
