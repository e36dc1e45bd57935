import { describe, expect, it } from "vitest";

import { decodeText, imageType } from "./read-content";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("decodeText", () => {
  it("refuses what is not text", () => {
    expect(decodeText(Uint8Array.of(0x50, 0x00), false)).toBeNull();
    expect(decodeText(Uint8Array.of(0xff, 0xfe), false)).toBeNull();
    expect(decodeText(encode("Grüße"), false)).toBe("Grüße");
  });
  it("accepts a text that is cut inside of a character", () => {
    expect(decodeText(encode("Grü").subarray(0, 3), true)).toBe("Gr");
  });
});

describe("imageType", () => {
  it.each([
    ["a/b.PNG", "image/png"],
    ["chart.svg", "image/svg+xml"],
    ["page.html", null],
    ["constructor", null],
    ["x.constructor", null],
  ])("%s is %s", (name, type) => {
    expect(imageType(name)).toBe(type);
  });
});
