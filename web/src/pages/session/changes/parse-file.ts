// Parses the patch of one file into what the diff viewer shows, with hidden characters marked and long lines cut.
import type { FileDiffMetadata } from "@pierre/diffs";

import { HunkReader } from "./hunk-reader";
import { LineMarks } from "./line-marks";
import { unquotePath } from "./patch-text";

export type ChangeKind = "added" | "modified" | "deleted" | "renamed" | "type_changed";

export interface FileChange {
  /** The path; with a number if a file is in the patch twice, such as one that became a link. */
  id: string;
  path: string;
  oldPath: string | null;
  kind: ChangeKind;
  isBinary: boolean;
  /** Such as `100644 → 100755`. */
  modes: string | null;
  added: number;
  deleted: number;
  hiddenCharacters: number;
  cutLines: number;
  diff: FileDiffMetadata;
  /** The patch, to see whether a newer one differs. */
  source: string;
}

interface Header {
  path: string;
  oldPath: string | null;
  kind: ChangeKind;
  isBinary: boolean;
  modes: string | null;
  /** Where the hunks begin. */
  end: number;
}

/** `known`: the ids of the files before it. */
export function parseFile(source: string, known = new Set<string>()): FileChange {
  const header = parseHeader(source);
  const marks = new LineMarks(source);
  const diff: FileDiffMetadata = {
    name: header.path,
    type: diffType(header, source),
    hunks: [],
    splitLineCount: 0,
    unifiedLineCount: 0,
    isPartial: true,
    additionLines: [],
    deletionLines: [],
    additionCharacterCount: 0,
    deletionCharacterCount: 0,
    ...(header.oldPath === null ? {} : { prevName: header.oldPath }),
  };
  let added = 0;
  let deleted = 0;
  if (!header.isBinary) {
    new HunkReader(source, header.end, diff, marks).read();
    for (const hunk of diff.hunks) {
      added += hunk.additionLines;
      deleted += hunk.deletionLines;
    }
  }
  return {
    id: addId(header.path, known),
    path: header.path,
    oldPath: header.oldPath,
    kind: header.kind,
    isBinary: header.isBinary,
    modes: header.modes,
    added,
    deleted,
    hiddenCharacters: marks.hidden,
    cutLines: marks.cut,
    diff,
    source,
  };
}

function addId(path: string, known: Set<string>): string {
  let id = path;
  for (let number = 2; known.has(id); number += 1) {
    id = `${path}#${number}`;
  }
  known.add(id);
  return id;
}

function diffType(header: Header, source: string): FileDiffMetadata["type"] {
  if (header.kind === "added") {
    return "new";
  }
  if (header.kind === "deleted") {
    return "deleted";
  }
  if (header.kind === "renamed") {
    return source.startsWith("@@ ", header.end) ? "rename-changed" : "rename-pure";
  }
  return "change";
}

function parseHeader(source: string): Header {
  let start = 0;
  let kind: ChangeKind = "modified";
  let isBinary = false;
  const found: Record<string, string> = {};
  for (;;) {
    const newline = source.indexOf("\n", start);
    const end = newline === -1 ? source.length : newline;
    // A binary file has no hunks; what follows is its content.
    if (start >= source.length || source.startsWith("@@ ", start) || isBinary) {
      break;
    }
    const line = source.slice(start, end);
    const name = /^(---|\+\+\+|rename from|rename to|old mode|new mode) (.*)$/.exec(line);
    if (name !== null) {
      found[name[1] ?? ""] = (name[2] ?? "").replace(/\t$/, "");
    } else if (line.startsWith("new file mode ")) {
      kind = "added";
    } else if (line.startsWith("deleted file mode ")) {
      kind = "deleted";
    } else if (line.startsWith("GIT binary patch") || line.startsWith("Binary files ")) {
      isBinary = true;
    }
    start = end + 1;
  }
  const renamedFrom = found["rename from"];
  const [firstLine = ""] = source.split("\n", 1);
  const path =
    pathOf(found["rename to"]) ??
    pathOf(found["+++"], "b/") ??
    pathOf(found["---"], "a/") ??
    pathOfHeader(firstLine.slice("diff --git ".length));
  const [oldMode, newMode] = [found["old mode"], found["new mode"]];
  return {
    path,
    oldPath: renamedFrom === undefined ? null : unquotePath(renamedFrom),
    kind: renamedFrom === undefined ? kind : "renamed",
    isBinary,
    modes: oldMode === undefined || newMode === undefined ? null : `${oldMode} → ${newMode}`,
    end: start,
  };
}

function pathOf(text: string | undefined, prefix = ""): string | null {
  if (text === undefined || text === "/dev/null") {
    return null;
  }
  const path = unquotePath(text);
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

/** The path in `a/NAME b/NAME`: both names are equal, because a rename has lines of its own. */
function pathOfHeader(names: string): string {
  const half = names.slice(0, Math.floor(names.length / 2));
  const path = unquotePath(half);
  return path.startsWith("a/") ? path.slice(2) : path;
}
