// Reads the hunks of a patch into the data of the diff viewer.
import type { ChangeContent, ContextContent, FileDiffMetadata, Hunk } from "@pierre/diffs";

import type { LineMarks } from "./line-marks";

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(?: (.*))?/;

export class HunkReader {
  readonly #source: string;
  readonly #diff: FileDiffMetadata;
  readonly #marks: LineMarks;
  #position: number;
  #lastEnd = 0;

  constructor(source: string, position: number, diff: FileDiffMetadata, marks: LineMarks) {
    this.#source = source;
    this.#position = position;
    this.#diff = diff;
    this.#marks = marks;
  }

  read(): void {
    while (this.#position < this.#source.length) {
      const header = HUNK.exec(this.#nextLine());
      if (header !== null) {
        this.#readHunk(header);
      }
    }
  }

  #nextLine(): string {
    const newline = this.#source.indexOf("\n", this.#position);
    const end = newline === -1 ? this.#source.length : newline;
    const line = this.#source.slice(this.#position, end);
    this.#position = end + 1;
    return line;
  }

  #readHunk(header: RegExpExecArray): void {
    const diff = this.#diff;
    const context = header[5];
    const hunk: Hunk = {
      collapsedBefore: 0,
      splitLineCount: 0,
      splitLineStart: 0,
      unifiedLineCount: 0,
      unifiedLineStart: 0,
      additionCount: 0,
      additionStart: Number(header[3]),
      additionLines: 0,
      deletionCount: 0,
      deletionStart: Number(header[1]),
      deletionLines: 0,
      deletionLineIndex: diff.deletionLines.length,
      additionLineIndex: diff.additionLines.length,
      hunkContent: [],
      hunkSpecs: `${header[0]}\n`,
      noEOFCRAdditions: false,
      noEOFCRDeletions: false,
      ...(context === undefined ? {} : { hunkContext: this.#marks.apply(context) }),
    };
    const [additions, deletions] = [Number(header[4] ?? 1), Number(header[2] ?? 1)];
    let content: ChangeContent | ContextContent | undefined;
    let last: "+" | "-" | " " | null = null;
    while (this.#position < this.#source.length) {
      const sign = this.#source[this.#position];
      if (sign === "\\") {
        this.#nextLine();
        this.#dropNewline(last, hunk);
        continue;
      }
      const isComplete = hunk.additionCount >= additions && hunk.deletionCount >= deletions;
      if (isComplete || (sign !== "+" && sign !== "-" && sign !== " ")) {
        break;
      }
      const line = `${this.#marks.apply(this.#nextLine().slice(1))}\n`;
      if (sign === " ") {
        content = content?.type === "context" ? content : this.#open("context", hunk);
        content.lines += 1;
      } else {
        content = content?.type === "change" ? content : this.#open("change", hunk);
        content[sign === "+" ? "additions" : "deletions"] += 1;
      }
      if (sign !== "-") {
        diff.additionLines.push(line);
        diff.additionCharacterCount += line.length;
        hunk.additionCount += 1;
      }
      if (sign !== "+") {
        diff.deletionLines.push(line);
        diff.deletionCharacterCount += line.length;
        hunk.deletionCount += 1;
      }
      hunk.additionLines += sign === "+" ? 1 : 0;
      hunk.deletionLines += sign === "-" ? 1 : 0;
      last = sign;
    }
    this.#place(hunk);
  }

  #open(type: "context", hunk: Hunk): ContextContent;
  #open(type: "change", hunk: Hunk): ChangeContent;
  #open(type: "context" | "change", hunk: Hunk): ContextContent | ChangeContent {
    const indexes = {
      additionLineIndex: this.#diff.additionLines.length,
      deletionLineIndex: this.#diff.deletionLines.length,
    };
    const content: ContextContent | ChangeContent =
      type === "context" ? { type, lines: 0, ...indexes } : { type, additions: 0, deletions: 0, ...indexes };
    hunk.hunkContent.push(content);
    return content;
  }

  /** `\ No newline at end of file` */
  #dropNewline(last: "+" | "-" | " " | null, hunk: Hunk): void {
    const diff = this.#diff;
    if (last === "+" || last === " ") {
      hunk.noEOFCRAdditions = true;
      diff.additionCharacterCount -= dropLast(diff.additionLines);
    }
    if (last === "-" || last === " ") {
      hunk.noEOFCRDeletions = true;
      diff.deletionCharacterCount -= dropLast(diff.deletionLines);
    }
  }

  /** Counts the rows, and the lines between this hunk and the one before. */
  #place(hunk: Hunk): void {
    const diff = this.#diff;
    const before = hunk.additionStart - (hunk.additionCount === 0 ? 0 : 1);
    hunk.collapsedBefore = Math.max(before - this.#lastEnd, 0);
    this.#lastEnd = before + hunk.additionCount;
    for (const content of hunk.hunkContent) {
      hunk.splitLineCount +=
        content.type === "context" ? content.lines : Math.max(content.additions, content.deletions);
      hunk.unifiedLineCount += content.type === "context" ? content.lines : content.additions + content.deletions;
    }
    hunk.splitLineStart = diff.splitLineCount + hunk.collapsedBefore;
    hunk.unifiedLineStart = diff.unifiedLineCount + hunk.collapsedBefore;
    diff.splitLineCount += hunk.collapsedBefore + hunk.splitLineCount;
    diff.unifiedLineCount += hunk.collapsedBefore + hunk.unifiedLineCount;
    diff.hunks.push(hunk);
  }
}

function dropLast(lines: string[]): number {
  const line = lines.at(-1);
  if (line?.endsWith("\n") !== true) {
    return 0;
  }
  lines[lines.length - 1] = line.slice(0, -1);
  return 1;
}
