// Builds what the viewer shows from files and comments. A file without news keeps its item, so nothing is drawn again.
import type { CodeViewDiffItem, DiffLineAnnotation, SelectedLineRange } from "@pierre/diffs";

import type { FileChange } from "./parse-file";
import type { Comment } from "./queries";
import { formatLines, type Lines } from "./ranges";
import { findCode } from "./rows";

export type Note =
  { kind: "comment"; comment: Comment; isMoved: boolean } | { kind: "box"; file: FileChange; lines: Lines };
export type DiffItem = CodeViewDiffItem<Note>;

const SIDES = { old: "deletions", new: "additions" } as const;

let version = 0;
const cache = new WeakMap<FileChange, { signature: string; item: DiffItem }>();

export function linesOf(comment: Comment): Lines {
  return { side: comment.side, start: comment.start_line, end: comment.end_line };
}

/** The lines of a file at which a comment is shown. Null: the file does not have its code any more. */
export function findPlace(file: FileChange, comment: Comment): Lines | null {
  return findCode(file.diff, linesOf(comment), comment.code);
}

/** `comments`: those on this file, in the diff that is shown. `box`: the lines that the person is commenting on. */
export function buildItem(
  file: FileChange,
  comments: readonly Comment[],
  box: Lines | null,
  isCollapsed: boolean,
): DiffItem {
  const shown = comments.flatMap((comment) => {
    const place = findPlace(file, comment);
    return place === null ? [] : [{ comment, place }];
  });
  const signature = JSON.stringify([
    isCollapsed,
    box === null ? null : formatLines(box),
    shown.map(({ comment, place }) => [comment.id, comment.updated_at, comment.sent_event_id, formatLines(place)]),
  ]);
  const known = cache.get(file);
  if (known?.signature === signature) {
    return known.item;
  }
  const annotations: DiffLineAnnotation<Note>[] = shown.map(({ comment, place }) => ({
    side: SIDES[comment.side],
    lineNumber: place.end,
    metadata: { kind: "comment", comment, isMoved: place.end !== comment.end_line },
  }));
  if (box !== null) {
    annotations.push({ side: SIDES[box.side], lineNumber: box.end, metadata: { kind: "box", file, lines: box } });
  }
  version += 1;
  const item: DiffItem = {
    id: file.id,
    type: "diff",
    fileDiff: file.diff,
    annotations,
    collapsed: isCollapsed,
    version,
  };
  cache.set(file, { signature, item });
  return item;
}

export function toSelection({ side, start, end }: Lines): SelectedLineRange {
  return { start, end, side: SIDES[side], endSide: SIDES[side] };
}

/** A selection that begins on one side and ends on the other counts as its end. */
export function fromSelection(range: SelectedLineRange): Lines {
  const endSide = range.endSide ?? range.side ?? "additions";
  const start = (range.side ?? endSide) === endSide ? range.start : range.end;
  return {
    side: endSide === "deletions" ? "old" : "new",
    start: Math.min(start, range.end),
    end: Math.max(start, range.end),
  };
}
