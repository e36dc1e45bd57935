// Pairs the changed files of two attempts by their paths.
import type { FileChange } from "../session/changes/parse-file";

export interface FilePair {
  path: string;
  left: FileChange | null;
  right: FileChange | null;
  /** Both attempts made the same change. */
  isSame: boolean;
}

export function pairFiles(left: readonly FileChange[], right: readonly FileChange[]): FilePair[] {
  const pairs = new Map<string, FilePair>();
  for (const file of left) {
    pairs.set(file.id, { path: file.id, left: file, right: null, isSame: false });
  }
  for (const file of right) {
    const pair = pairs.get(file.id);
    pairs.set(file.id, {
      path: file.id,
      left: pair?.left ?? null,
      right: file,
      isSame: pair?.left != null && isSameChange(pair.left, file),
    });
  }
  // Like git: in the order of the bytes of their names, as far as that is the order of characters.
  return [...pairs.values()].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
}

/** The hunks are compared: the lines before them name objects, which may differ. */
function isSameChange(left: FileChange, right: FileChange): boolean {
  return left.kind === right.kind && hunksOf(left) === hunksOf(right);
}

function hunksOf(file: FileChange): string {
  const start = file.isBinary ? file.source.indexOf("\nGIT binary patch") : file.source.indexOf("\n@@ ");
  return start === -1 ? "" : file.source.slice(start);
}
