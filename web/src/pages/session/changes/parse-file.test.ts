import { processFile } from "@pierre/diffs";
import { describe, expect, it } from "vitest";

import { LONGEST_LINE } from "./line-marks";
import { parseFile } from "./parse-file";
import { PatchSplitter, unquotePath } from "./patch-text";

const PATCH = `diff --git a/src/stats.py b/src/stats.py
index 1..2 100644
--- a/src/stats.py
+++ b/src/stats.py
@@ -5,4 +5,6 @@ def median(values):
     ordered = sorted(values)
     middle = len(ordered) // 2
-    return ordered[middle]
+    if len(ordered) % 2:
+        return ordered[middle]
+    return (ordered[middle - 1] + ordered[middle]) / 2
 
@@ -20,2 +22 @@
 last
-gone
\\ No newline at end of file
`;

function file(patch: string) {
  return parseFile(patch);
}

describe("parseFile", () => {
  it("agrees with the parser of the viewer", () => {
    const theirs = processFile(PATCH, { disableLineMatching: true });
    const ours = file(PATCH).diff;
    expect(ours.hunks.map(({ hunkSpecs, ...hunk }) => hunk)).toEqual(
      theirs?.hunks.map(({ hunkSpecs, ...hunk }) => hunk).map((hunk) => JSON.parse(JSON.stringify(hunk)) as unknown),
    );
    expect([ours.additionLines, ours.deletionLines]).toEqual([theirs?.additionLines, theirs?.deletionLines]);
    expect([ours.unifiedLineCount, ours.splitLineCount]).toEqual([theirs?.unifiedLineCount, theirs?.splitLineCount]);
    expect([ours.additionCharacterCount, ours.deletionCharacterCount]).toEqual([
      theirs?.additionCharacterCount,
      theirs?.deletionCharacterCount,
    ]);
  });

  it("counts lines", () => {
    expect(file(PATCH)).toMatchObject({ path: "src/stats.py", kind: "modified", added: 3, deleted: 2 });
  });

  it.each([
    [
      "diff --git a/a b.txt b/a b.txt\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/a b.txt\t\n@@ -0,0 +1 @@\n+x\n",
      "a b.txt",
      "added",
    ],
    ["diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n", "new", "renamed"],
    ["diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n", "run.sh", "modified"],
    [
      "diff --git a/gone b/gone\ndeleted file mode 100644\nindex 1..0\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
      "gone",
      "deleted",
    ],
    ['diff --git "a/\\342\\200\\256x" "b/\\342\\200\\256x"\nnew file mode 100644\nindex 0..0\n', "\u202ex", "added"],
  ])("reads the header %#", (patch, path, kind) => {
    expect(file(patch)).toMatchObject({ path, kind });
  });

  it("shows no content of a binary file", () => {
    const patch = "diff --git a/x.png b/x.png\nindex 1..2 100644\nGIT binary patch\nliteral 5\nMcmZ\n@@ -1 +1 @@\n\n";
    expect(file(patch)).toMatchObject({ isBinary: true, added: 0, diff: { hunks: [] } });
  });

  it("marks hidden characters and cuts long lines", () => {
    const long = "y".repeat(LONGEST_LINE + 5);
    const patch = `diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,3 @@\n+a\u202eb\n+${long}\n+fine 👨‍👩‍👧\n`;
    const found = file(patch);
    expect(found).toMatchObject({ hiddenCharacters: 1, cutLines: 1 });
    expect(found.diff.additionLines[0]).toBe("a⟦U+202E⟧b\n");
    expect(found.diff.additionLines[1]).toBe(`${"y".repeat(LONGEST_LINE)} … 5 more characters\n`);
    expect(found.diff.additionLines[2]).toBe("fine 👨‍👩‍👧\n");
  });

  it("shows carriage returns only where line ends differ", () => {
    const head = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n";
    expect(file(`${head}-a\r\n+a\n`).diff.deletionLines).toEqual(["a⟦CR⟧\n"]);
    expect(file(`${head}-a\r\n+b\r\n`).diff).toMatchObject({ deletionLines: ["a\n"], additionLines: ["b\n"] });
  });
});

describe("PatchSplitter", () => {
  it.each([1, 7, 100, 10_000])("finds the same files in pieces of %i characters", (size) => {
    const patch = PATCH + PATCH.replaceAll("stats", "other");
    const splitter = new PatchSplitter();
    const files: string[] = [];
    for (let start = 0; start < patch.length; start += size) {
      files.push(...splitter.add(patch.slice(start, start + size)));
    }
    files.push(...splitter.finish());
    expect(files.map((one) => file(one).path)).toEqual(["src/stats.py", "src/other.py"]);
    expect(files.join("")).toBe(patch);
  });

  it("does not take a line of a file for a header", () => {
    const splitter = new PatchSplitter();
    splitter.add("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+diff --git a/y b/y\n");
    expect(splitter.finish()).toHaveLength(1);
  });
});

describe("unquotePath", () => {
  it.each([
    ["plain/name", "plain/name"],
    ['"caf\\303\\251"', "café"],
    ['"a\\"b\\\\c\\n"', 'a"b\\c\n'],
    ['"\\377x"', "\\xffx"],
  ])("%s is %s", (text, path) => {
    expect(unquotePath(text)).toBe(path);
  });
});
