import { describe, expect, it } from "vitest";

import { splitHidden } from "./safe-text";

const marks = (text: string) => splitHidden(text).flatMap((part) => (part.mark === null ? [] : [part.mark]));

describe("splitHidden", () => {
  it("returns plain text whole", () => {
    expect(splitHidden("git push origin main\n\tnext")).toEqual([{ text: "git push origin main\n\tnext", mark: null }]);
    expect(splitHidden("")).toEqual([{ text: "", mark: null }]);
  });

  it.each([
    ["rm -rf \u202egpj.txt", "U+202E"],
    ["a\u200bb", "U+200B"],
    ["a\u2066b\u2069", "U+2066"],
    ["a\u0000b", "NUL"],
    ["\u001b[31m", "ESC"],
    ["a\rb", "CR"],
    ["tag\u{e0041}", "U+E0041"],
    ["\ufeffx", "U+FEFF"],
    ["lone \ud800 surrogate", "U+D800"],
    ["c1 \u009b", "U+009B"],
  ])("marks %j", (text, mark) => {
    expect(marks(text)[0]).toBe(mark);
    expect(
      splitHidden(text)
        .map((part) => part.text)
        .join(""),
    ).toBe(text);
  });

  it("leaves line ends and emoji sequences alone, and marks joiners elsewhere", () => {
    expect(marks("one\r\ntwo")).toEqual([]);
    expect(marks("👨‍👩‍👧 ❤️ 👍🏽")).toEqual([]);
    expect(marks("pay\u200dpal")).toEqual(["U+200D"]);
  });

  it("leaves right-to-left writing alone", () => {
    expect(marks("שלום مرحبا")).toEqual([]);
  });
});
