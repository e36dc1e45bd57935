// The lines that a diff shows, in their order, for moving by keyboard, quoting, and checking comments.
import type { FileDiffMetadata } from "@pierre/diffs";

import { LineMarks } from "./line-marks";
import type { Lines } from "./ranges";

export interface DiffRow {
  /** Null on the side that does not have the line. */
  oldLine: number | null;
  newLine: number | null;
  text: string;
}

const cache = new WeakMap<FileDiffMetadata, readonly DiffRow[]>();

export function listRows(diff: FileDiffMetadata): readonly DiffRow[] {
  const known = cache.get(diff);
  if (known !== undefined) {
    return known;
  }
  const rows: DiffRow[] = [];
  for (const hunk of diff.hunks) {
    let oldLine = hunk.deletionStart;
    let newLine = hunk.additionStart;
    for (const content of hunk.hunkContent) {
      if (content.type === "context") {
        for (let index = 0; index < content.lines; index += 1) {
          const text = diff.additionLines[content.additionLineIndex + index] ?? "";
          rows.push({ oldLine: oldLine++, newLine: newLine++, text });
        }
        continue;
      }
      for (let index = 0; index < content.deletions; index += 1) {
        const text = diff.deletionLines[content.deletionLineIndex + index] ?? "";
        rows.push({ oldLine: oldLine++, newLine: null, text });
      }
      for (let index = 0; index < content.additions; index += 1) {
        const text = diff.additionLines[content.additionLineIndex + index] ?? "";
        rows.push({ oldLine: null, newLine: newLine++, text });
      }
    }
  }
  cache.set(diff, rows);
  return rows;
}

function lineOf(row: DiffRow, side: Lines["side"]): number | null {
  return side === "old" ? row.oldLine : row.newLine;
}

/** The lines as the diff shows them. Null: it does not show all of them. */
export function readLines(diff: FileDiffMetadata, lines: Lines): string[] | null {
  const found: string[] = [];
  for (const row of listRows(diff)) {
    const number = lineOf(row, lines.side);
    if (number !== null && number >= lines.start && number <= lines.end) {
      found.push(row.text.replace(/\n$/, ""));
    }
  }
  return found.length === lines.end - lines.start + 1 ? found : null;
}

/**
 * Where the code that a comment quotes is now. Lines that moved are found if the diff shows their code at one place only,
 * and it is more than brackets. Null: the diff does not show it any more.
 */
export function findCode(diff: FileDiffMetadata, lines: Lines, code: string): Lines | null {
  const marks = new LineMarks(code);
  const quoted = code.split("\n").map((line) => withoutReturn(marks.apply(line)));
  const hasQuoted = (found: readonly string[] | null): boolean =>
    found?.length === quoted.length && found.every((line, index) => withoutReturn(line) === quoted[index]);
  if (hasQuoted(readLines(diff, lines))) {
    return lines;
  }
  if (!/[\p{L}\p{N}]/u.test(code)) {
    return null;
  }
  const places = listRows(diff)
    .filter((row) => withoutReturn(row.text.replace(/\n$/, "")) === quoted[0])
    .map((row) => lineOf(row, lines.side))
    .filter((start) => start !== null)
    .map((start) => ({ side: lines.side, start, end: start + quoted.length - 1 }))
    .filter((place) => hasQuoted(readLines(diff, place)));
  const [place = null] = places;
  return places.length === 1 ? place : null;
}

function withoutReturn(line: string): string {
  return line.replace(/(\r|⟦CR⟧)$/, "");
}

/** The selection after a key: the next line, or with `extend` one line more. Deleted lines are on the old side. */
export function moveLines(
  diff: FileDiffMetadata,
  lines: Lines | null,
  step: 1 | -1,
  { extend = false } = {},
): Lines | null {
  const rows = listRows(diff);
  if (rows.length === 0) {
    return null;
  }
  if (lines === null) {
    const first = rows.findIndex((row) => row.oldLine === null || row.newLine === null);
    return linesOfRow(rows[Math.max(first, 0)]);
  }
  if (extend) {
    return extendLines(rows, lines, step);
  }
  const edge = step === 1 ? lines.end : lines.start;
  const index = rows.findIndex((row) => lineOf(row, lines.side) === edge);
  return linesOfRow(rows[Math.min(Math.max(index + step, 0), rows.length - 1)]) ?? lines;
}

function extendLines(rows: readonly DiffRow[], lines: Lines, step: 1 | -1): Lines {
  // Downwards the end moves; upwards the end moves back, and then the start.
  const next =
    step === 1 || lines.end > lines.start ? { ...lines, end: lines.end + step } : { ...lines, start: lines.start - 1 };
  const numbers = new Set(rows.map((row) => lineOf(row, lines.side)));
  return numbers.has(next.end) && numbers.has(next.start) ? next : lines;
}

function linesOfRow(row: DiffRow | undefined): Lines | null {
  if (row?.newLine != null) {
    return { side: "new", start: row.newLine, end: row.newLine };
  }
  return row?.oldLine == null ? null : { side: "old", start: row.oldLine, end: row.oldLine };
}
