import { describe, expect, it } from "vitest";

import { parseFile } from "./parse-file";
import { describeLines, formatLines, formatRange, parseLines, parseRange } from "./ranges";
import { findCode, moveLines, readLines } from "./rows";

const { diff } = parseFile(`diff --git a/x b/x
--- a/x
+++ b/x
@@ -5,3 +5,4 @@
 keep
-old
+new
+more
 end
`);

describe("rows", () => {
  it("reads lines of both sides, and none that are not shown", () => {
    expect(readLines(diff, { side: "new", start: 6, end: 7 })).toEqual(["new", "more"]);
    expect(readLines(diff, { side: "old", start: 6, end: 7 })).toEqual(["old", "end"]);
    expect(readLines(diff, { side: "new", start: 4, end: 5 })).toBeNull();
  });

  it("finds the code of a comment where it is now", () => {
    const at = (start: number, end = start) => ({ side: "new", start, end }) as const;
    expect(findCode(diff, at(6), "new\r")).toEqual(at(6));
    expect(findCode(diff, at(6), "other")).toBeNull();
    expect(findCode(diff, at(2), "more")).toEqual(at(7));
    expect(findCode(diff, at(90, 91), "new\nmore")).toEqual(at(6, 7));
    expect(findCode(diff, { side: "old", start: 1, end: 1 }, "old")).toEqual({ side: "old", start: 6, end: 6 });
    expect(findCode(diff, at(2), "old")).toBeNull();
  });

  it("does not guess where code is that is there twice, or only brackets", () => {
    const twice = parseFile(`diff --git a/x b/x
--- a/x
+++ b/x
@@ -1,1 +1,4 @@
 same
+same
+}
+
`).diff;
    const far = { side: "new", start: 90, end: 90 } as const;
    expect(findCode(twice, far, "same")).toBeNull();
    expect(findCode(twice, { ...far, start: 2, end: 2 }, "same")).toEqual({ ...far, start: 2, end: 2 });
    expect(findCode(twice, far, "}")).toBeNull();
    expect(findCode(twice, far, "")).toBeNull();
  });

  it("moves over deleted and added lines", () => {
    const first = moveLines(diff, null, 1);
    expect(first).toEqual({ side: "old", start: 6, end: 6 });
    const second = moveLines(diff, first, 1);
    expect(second).toEqual({ side: "new", start: 6, end: 6 });
    expect(moveLines(diff, second, 1, { extend: true })).toEqual({ side: "new", start: 6, end: 7 });
    expect(moveLines(diff, { side: "new", start: 6, end: 7 }, -1, { extend: true })).toEqual(second);
    expect(moveLines(diff, { side: "new", start: 8, end: 8 }, 1)).toEqual({ side: "new", start: 8, end: 8 });
    expect(moveLines(diff, { side: "new", start: 8, end: 8 }, 1, { extend: true })).toEqual({
      side: "new",
      start: 8,
      end: 8,
    });
  });
});

describe("addresses", () => {
  it.each(["L12", "L12-20", "old:3-4"])("reads and writes lines %s", (text) => {
    const lines = parseLines(text);
    expect(lines === null ? null : formatLines(lines)).toBe(text);
  });
  it("drops what is no line", () => {
    expect([parseLines("x"), parseLines(undefined), parseLines("1-2-3")]).toEqual([null, null, null]);
    expect(parseLines("9-4")).toEqual({ side: "new", start: 4, end: 9 });
    expect(describeLines({ side: "old", start: 4, end: 9 })).toBe("lines 4–9 before the change");
  });
  it.each([undefined, "turn_1", "turn_1..turn_2"])("reads and writes the range %s", (text) => {
    expect(formatRange(parseRange(text))).toBe(text);
  });
});
