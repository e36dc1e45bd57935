import { expect, it } from "vitest";

import { compact, readFlag, readNumber, readOneOf, readText, safeReturnPath } from "./search";

it("reads valid parameters and drops the others", () => {
  const search = { q: "median", n: "12", state: "running", bad: "x", pinned: true };
  expect(readText(search, "q")).toBe("median");
  expect(readNumber(search, "n")).toBe(12);
  expect(readNumber(search, "q")).toBeUndefined();
  expect(readOneOf(search, "state", ["running", "done"])).toBe("running");
  expect(readOneOf(search, "bad", ["running", "done"])).toBeUndefined();
  expect(readFlag(search, "pinned")).toBe(true);
  expect(compact({ a: 1, b: undefined })).toEqual({ a: 1 });
});

it.each([
  ["/sessions?state=running#top", "/sessions?state=running#top"],
  [undefined, "/"],
  ["//evil.example", "/"],
  ["/\\evil.example", "/"],
  ["https://evil.example/", "/"],
  ["javascript:alert(1)", "/"],
  ["/\t/evil.example", "/"],
])("returns to %j as %j", (path, expected) => {
  expect(safeReturnPath(path)).toBe(expected);
});
