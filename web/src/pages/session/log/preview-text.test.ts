import { describe, expect, it } from "vitest";

import { PreviewText } from "./preview-text";

function stream(text: string, size: number): PreviewText {
  const preview = new PreviewText();
  for (let at = 0; at < text.length; at += size) {
    preview.append(text.slice(at, at + size));
  }
  return preview;
}

const CODE = "```python\na = 1\n\nb = 2\n```";

describe("PreviewText", () => {
  it.each([1, 3, 1000])("cuts at blank lines, whatever the size of the pieces (%i)", (size) => {
    const preview = stream("First.\n\nSecond\nline.\n\nThi", size);
    expect(preview.blocks).toEqual(["First.", "Second\nline."]);
    expect(preview.tail).toBe("Thi");
  });

  it.each([1, 7, 1000])("does not cut inside a code block (%i)", (size) => {
    const preview = stream(`Text.\n\n${CODE}\n\nAfter`, size);
    expect(preview.blocks).toEqual(["Text.", CODE]);
    expect(preview.tail).toBe("After");
  });

  it("keeps all text", () => {
    const text = `# Title\n\n- a\n- b\n\n${CODE}\n\nend`;
    const preview = stream(text, 5);
    expect([...preview.blocks, preview.tail].join("\n\n")).toBe(text);
    expect(preview.length).toBe(text.length);
  });
});
