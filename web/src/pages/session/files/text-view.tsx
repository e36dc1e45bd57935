// Text with line numbers and colours. It draws only the lines near the screen.
import type { CodeViewFileItem } from "@pierre/diffs";
import { CodeView } from "@pierre/diffs/react";
import { useMemo } from "react";

import { useIsDark } from "@/frame/theme";
import { LineMarks } from "../changes/line-marks";

const STYLE = {
  "--diffs-font-family": "var(--font-mono)",
  "--diffs-font-size": "13px",
  "--diffs-line-height": "20px",
} as Record<string, string>;
const CSS = ":host { --diffs-light-bg: var(--canvas); --diffs-dark-bg: var(--canvas); }";

export default function TextView({ id, name, text }: { id: string; name: string; text: string }) {
  const isDark = useIsDark();
  const items = useMemo<CodeViewFileItem[]>(() => {
    const marks = new LineMarks(text);
    const contents = text
      .split("\n")
      .map((line) => marks.apply(line))
      .join("\n");
    return [{ id, type: "file", file: { name, contents } }];
  }, [id, name, text]);
  const options = useMemo(
    () => ({
      theme: { light: "pierre-light", dark: "pierre-dark" },
      themeType: isDark ? ("dark" as const) : ("light" as const),
      disableFileHeader: true,
      overflow: "scroll" as const,
      preferredHighlighter: "shiki-js" as const,
      unsafeCSS: CSS,
      layout: { paddingTop: 0, paddingBottom: 8, gap: 0 },
    }),
    [isDark],
  );
  return (
    <CodeView
      items={items}
      options={options}
      className="min-h-0 flex-1 overflow-x-hidden overflow-y-auto"
      style={STYLE}
      disableWorkerPool
    />
  );
}
