import { describe, expect, it } from "vitest";

import { isSame, pickChanged } from "./changed-fields";

describe("changed fields", () => {
  it("sends nothing that is equal", () => {
    expect(pickChanged({ a: 1, b: { c: [1, 2], d: null } }, { a: 1, b: { d: null, c: [1, 2] } })).toEqual({});
  });

  it("sends what is new, different or cleared", () => {
    expect(pickChanged({ a: "old", b: "same", c: "gone" }, { a: "new", b: "same", c: null, d: 1 })).toEqual({
      a: "new",
      c: null,
      d: 1,
    });
  });

  it("keeps the order of lists", () => {
    expect(isSame([1, 2], [2, 1])).toBe(false);
    expect(isSame({ a: { x: 1, y: 2 } }, { a: { y: 2, x: 1 } })).toBe(true);
  });
});
