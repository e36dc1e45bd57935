import { describe, expect, it } from "vitest";

import { parseFile } from "../session/changes/parse-file";
import { pairFiles } from "./files-in-step";

function file(path: string, line: string) {
  return parseFile(
    `diff --git a/${path} b/${path}\nindex ${line}..2\n--- a/${path}\n+++ b/${path}\n@@ -1 +1 @@\n-a\n+${line}\n`,
  );
}

describe("pairFiles", () => {
  it("has every file of both once, and knows equal changes", () => {
    const pairs = pairFiles([file("b", "x"), file("a", "y")], [file("a", "z"), file("b", "x"), file("c", "x")]);
    expect(pairs.map(({ path, left, right, isSame }) => [path, left !== null, right !== null, isSame])).toEqual([
      ["a", true, true, false],
      ["b", true, true, true],
      ["c", false, true, false],
    ]);
  });
});
