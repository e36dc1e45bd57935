// The diffs of all files in one scrolling view, which draws only what is near the screen.
import {
  CodeView,
  type CodeViewAnnotationArgs,
  type CodeViewHandle,
  type CodeViewReactOptions,
} from "@pierre/diffs/react";
import { Plus } from "lucide-react";
import { type ReactNode, useCallback, useEffect, useEffectEvent, useMemo, useRef } from "react";

import { useIsDark } from "@/frame/theme";
import { DIFF_CSS, DIFF_STYLE } from "./diff-style";
import { type DiffItem, fromSelection, type Note, toSelection } from "./diff-items";
import type { FileChange } from "./parse-file";
import type { Lines } from "./ranges";
import { readLines } from "./rows";

/** What to bring into view. A new object does it again. */
export interface Reveal {
  fileId: string;
  lines: Lines | null;
  /** `nearest` scrolls only as far as necessary. */
  align: "start" | "center" | "nearest";
}

interface DiffViewProps {
  items: readonly DiffItem[];
  files: ReadonlyMap<string, FileChange>;
  layout: "unified" | "split";
  selection: { fileId: string; lines: Lines } | null;
  onSelect: (fileId: string, lines: Lines | null) => void;
  /** Undefined: comments are not possible here. */
  onComment?: ((fileId: string, lines: Lines) => void) | undefined;
  onActive: (fileId: string) => void;
  reveal: Reveal | null;
  renderHeader: (file: FileChange) => ReactNode;
  renderNote: (note: Note) => ReactNode;
  footer?: ReactNode;
}

/** The line under the pointer. */
interface HoveredLine {
  lineNumber: number;
  side?: "additions" | "deletions";
}

const HEADER_HEIGHT = 44;
const USER_SCROLL_MS = 1_000;

export default function DiffView(props: DiffViewProps) {
  const { items, files, layout, selection, onSelect, onComment, onActive, reveal, renderHeader, renderNote, footer } =
    props;
  const isDark = useIsDark();
  const viewer = useRef<CodeViewHandle<Note, undefined>>(null);
  const canComment = onComment !== undefined;
  const comment = useRef(onComment);
  /** When the person scrolled last: what the page scrolls by itself does not change the active file. */
  const scrolledAt = useRef(0);
  useEffect(() => {
    comment.current = onComment;
  });
  const options = useMemo<CodeViewReactOptions<Note, undefined>>(
    () => ({
      theme: { light: "pierre-light", dark: "pierre-dark" },
      themeType: isDark ? "dark" : "light",
      diffStyle: layout,
      diffIndicators: "classic",
      hunkSeparators: "line-info-basic",
      overflow: "scroll",
      lineDiffType: "word",
      stickyHeaders: true,
      enableLineSelection: true,
      enableGutterUtility: canComment,
      preferredHighlighter: "shiki-js",
      unsafeCSS: DIFF_CSS,
      layout: { paddingTop: 0, paddingBottom: 0, gap: 12 },
      itemMetrics: { diffHeaderHeight: HEADER_HEIGHT, lineHeight: 20, spacing: 8, hunkLineCount: 50 },
    }),
    [isDark, layout, canComment],
  );
  const renderPlus = useCallback(
    (getLine: () => HoveredLine | undefined, { id }: { id: string }) => (
      <CommentButton
        onClick={() => {
          const line = getLine();
          if (line !== undefined) {
            comment.current?.(id, fromSelection({ ...line, start: line.lineNumber, end: line.lineNumber }));
          }
        }}
      />
    ),
    [],
  );
  const selectedLines = useMemo(
    () => (selection === null ? null : { id: selection.fileId, range: toSelection(selection.lines) }),
    [selection],
  );

  const isLoaded = reveal !== null && files.has(reveal.fileId);
  const show = useEffectEvent((target: Reveal) => {
    const file = files.get(target.fileId);
    const isCollapsed = items.find((item) => item.id === target.fileId)?.collapsed === true;
    const { lines } = target;
    if (lines === null || isCollapsed || file === undefined || readLines(file.diff, lines) === null) {
      viewer.current?.scrollTo({ type: "item", id: target.fileId, align: target.align, behavior: "instant" });
    } else {
      const range = toSelection(lines);
      viewer.current?.scrollTo({
        type: "range",
        id: target.fileId,
        range,
        align: target.align,
        offset: target.align === "nearest" ? 40 : 0,
        behavior: "instant",
      });
    }
  });
  useEffect(() => {
    if (reveal !== null && isLoaded) {
      show(reveal);
    }
  }, [reveal, isLoaded]);

  return (
    <CodeView<Note>
      ref={viewer}
      items={items}
      options={options}
      className="min-h-0 min-w-0 flex-1 overflow-x-hidden overflow-y-auto overscroll-contain outline-none"
      style={DIFF_STYLE}
      disableWorkerPool
      selectedLines={selectedLines}
      onSelectedLinesChange={(next) => {
        if (next === null) {
          if (selection !== null) {
            onSelect(selection.fileId, null);
          }
        } else {
          onSelect(next.id, fromSelection(next.range));
        }
      }}
      containerRef={(container) => {
        for (const name of ["wheel", "touchmove", "pointerdown"]) {
          container?.addEventListener(name, () => (scrolledAt.current = performance.now()), { passive: true });
        }
      }}
      onScroll={(top, view) => {
        if (performance.now() - scrolledAt.current > USER_SCROLL_MS) {
          return;
        }
        const reached = view.getRenderedItems().findLast((item) => (view.getTopForItem(item.id) ?? 0) <= top + 8);
        if (reached !== undefined) {
          onActive(reached.id);
        }
      }}
      renderCustomHeader={(item) => {
        const file = files.get(item.id);
        return file === undefined ? null : renderHeader(file);
      }}
      {...(canComment ? { renderGutterUtility: renderPlus } : {})}
      renderAnnotation={(...[annotation]: CodeViewAnnotationArgs<Note>) => renderNote(annotation.metadata)}
      {...(footer === undefined ? {} : { renderCodeViewFooter: () => footer })}
    />
  );
}

/** Beside the line under the pointer. It replaces the button of the viewer, which has no name. */
function CommentButton({ onClick }: { onClick: () => void }) {
  return (
    <button
      type="button"
      aria-label="Comment on this line"
      title="Comment on this line"
      className="relative z-10 flex size-5 cursor-pointer items-center justify-center rounded-sm bg-accent text-on-accent hover:bg-accent-hover"
      onClick={onClick}
    >
      <Plus aria-hidden className="size-3.5" />
    </button>
  );
}
