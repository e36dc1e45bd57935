// The lines in which two texts differ: side by side, or one below the other on a phone.
import { type CodeViewDiffItem, parseDiffFromFile } from "@pierre/diffs";
import { CodeView } from "@pierre/diffs/react";
import { useMemo, useSyncExternalStore } from "react";

import { useIsDark } from "@/frame/theme";
import { DIFF_CSS, DIFF_STYLE } from "@/pages/session/changes/diff-style";
import { LineMarks } from "@/pages/session/changes/line-marks";

const narrow = globalThis.matchMedia("(max-width: 767px)");

function subscribe(listener: () => void): () => void {
  narrow.addEventListener("change", listener);
  return () => {
    narrow.removeEventListener("change", listener);
  };
}

function markLines(text: string): string {
  const marks = new LineMarks(text);
  return text
    .split("\n")
    .map((line) => marks.apply(line))
    .join("\n");
}

/** Nothing in the text can have the focus, and without it the keyboard could not scroll. */
function makeFocusable(container: HTMLDivElement | null): void {
  if (container !== null) {
    container.tabIndex = 0;
  }
}

export default function VersionDiff({ before, after, name }: { before: string; after: string; name: string }) {
  const isDark = useIsDark();
  const isNarrow = useSyncExternalStore(subscribe, () => narrow.matches);
  const items = useMemo<CodeViewDiffItem[]>(() => {
    const fileDiff = parseDiffFromFile(
      { name: "agent.txt", contents: markLines(before) },
      { name: "agent.txt", contents: markLines(after) },
    );
    return [{ id: name, type: "diff", fileDiff }];
  }, [before, after, name]);
  const options = useMemo(
    () => ({
      theme: { light: "pierre-light", dark: "pierre-dark" },
      themeType: isDark ? ("dark" as const) : ("light" as const),
      diffStyle: isNarrow ? ("unified" as const) : ("split" as const),
      diffIndicators: "classic" as const,
      hunkSeparators: "line-info-basic" as const,
      overflow: "wrap" as const,
      lineDiffType: "word" as const,
      disableFileHeader: true,
      disableLineNumbers: true,
      expandUnchanged: true,
      preferredHighlighter: "shiki-js" as const,
      unsafeCSS: DIFF_CSS,
      layout: { paddingTop: 0, paddingBottom: 8, gap: 0 },
    }),
    [isDark, isNarrow],
  );
  return (
    <section aria-label="What changed" className="flex min-h-80 flex-1 flex-col rounded-md border">
      <CodeView
        items={items}
        options={options}
        className="min-h-0 flex-1 overflow-x-hidden overflow-y-auto rounded-md outline-offset-[-2px]"
        containerRef={makeFocusable}
        style={DIFF_STYLE}
        disableWorkerPool
      />
    </section>
  );
}
