// The files of the next message: uploading, ready or refused.
import { X } from "lucide-react";

import { cn } from "@/design/classes";
import { SafeText } from "@/design/text/text";

import type { useAttachments } from "./use-attachments";

export function AttachmentList({ attachments }: { attachments: ReturnType<typeof useAttachments> }) {
  if (attachments.all.length === 0) {
    return null;
  }
  return (
    <ul aria-label="Files to send" className="mb-2 flex flex-wrap gap-2">
      {attachments.all.map((one) => (
        <li
          key={one.key}
          className={cn(
            "flex h-7 max-w-72 items-center gap-1.5 rounded-sm border pl-2 text-sm max-md:h-10",
            one.error !== null && "border-failed text-failed",
          )}
        >
          <SafeText className="truncate">{one.name}</SafeText>
          <span className="min-w-0 truncate text-muted" role="status">
            {one.error ?? (one.file === null ? "uploading" : "")}
          </span>
          <button
            type="button"
            aria-label={`Remove ${one.name}`}
            className="flex size-7 shrink-0 items-center justify-center rounded-sm hover:bg-hover max-md:size-10"
            onClick={() => {
              attachments.remove(one.key);
            }}
          >
            <X aria-hidden className="size-3.5" />
          </button>
        </li>
      ))}
    </ul>
  );
}
