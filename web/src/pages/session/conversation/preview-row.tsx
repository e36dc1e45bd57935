// Text while it is generated: complete blocks as Markdown, each parsed once, and the rest as plain text.
import { useSyncExternalStore } from "react";

import { SafeText } from "@/design/text/text";

import type { Preview, SessionLog } from "../log/session-log";
import { Markdown } from "./markdown/markdown";

/** What is shown of thinking while it streams. */
const THINKING_SHOWN = 600;
/** Of a block that is not complete, such as a very long listing. */
const TAIL_SHOWN = 8_000;

export function PreviewRow({ preview, log }: { preview: Preview; log: SessionLog }) {
  useSyncExternalStore(log.subscribeToPreviews, log.getPreviewVersion);
  const { blocks, tail } = preview.text;
  if (preview.type === "agent.thinking") {
    const text = [...blocks.slice(-4), tail].join("\n\n");
    return (
      <div className="flex min-h-8 gap-2 py-1.5 text-muted">
        <span className="shrink-0 pl-6">thinking …</span>
        <SafeText className="line-clamp-3 min-w-0 text-sm break-words italic">{text.slice(-THINKING_SHOWN)}</SafeText>
      </div>
    );
  }
  return (
    <div className="py-2" data-testid="preview" aria-live="off">
      {blocks.map((block, index) => (
        <div key={index} className="mb-2">
          <Markdown>{block}</Markdown>
        </div>
      ))}
      {tail !== "" && (
        <SafeText className="block break-words whitespace-pre-wrap [overflow-wrap:anywhere]">
          {tail.slice(-TAIL_SHOWN)}
        </SafeText>
      )}
    </div>
  );
}
