// What can be done with the selected lines. It is the way to comment on a phone, where nothing hovers.
import { Link2, MessageSquarePlus, X } from "lucide-react";

import { Button } from "@/design/components/button";
import { describeLines, type Lines } from "./ranges";

interface SelectionBarProps {
  lines: Lines;
  /** Null: possible. Otherwise the reason. */
  cannotComment: string | null;
  onComment: () => void;
  onCopy: () => void;
  onClear: () => void;
}

export function SelectionBar({ lines, cannotComment, onComment, onCopy, onClear }: SelectionBarProps) {
  return (
    <div className="pointer-events-none absolute inset-x-0 bottom-3 z-10 flex justify-center px-2">
      <div
        role="toolbar"
        aria-label="Selected lines"
        className="pointer-events-auto flex items-center gap-1 rounded-lg border bg-raised p-1 pl-3 shadow-popup max-md:[&>button]:h-11"
      >
        <span className="mr-1 text-sm whitespace-nowrap first-letter:uppercase">{describeLines(lines)}</span>
        <Button
          size="sm"
          variant="quiet"
          shortcut="C"
          disabled={cannotComment !== null}
          title={cannotComment ?? undefined}
          onClick={onComment}
        >
          <MessageSquarePlus />
          Comment
        </Button>
        <Button size="sm" variant="quiet" shortcut="L" onClick={onCopy}>
          <Link2 />
          Copy link
        </Button>
        <Button size="icon" variant="quiet" aria-label="Clear the selection" className="size-7" onClick={onClear}>
          <X />
        </Button>
      </div>
    </div>
  );
}
