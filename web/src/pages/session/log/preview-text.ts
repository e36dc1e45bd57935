// Text that is still being generated, cut into Markdown blocks that are complete and the rest: a complete block is parsed
// once, however much follows.
const FENCE = /^ {0,3}(`{3,}|~{3,})/;

export class PreviewText {
  readonly blocks: string[] = [];
  #tail = "";
  #length = 0;

  /** What is not a complete block yet. */
  get tail(): string {
    return this.#tail;
  }

  get length(): number {
    return this.#length;
  }

  append(text: string): void {
    this.#length += text.length;
    this.#tail += text;
    if (text.includes("\n")) {
      this.#cut();
    }
  }

  /** Moves complete blocks out of the tail: up to a blank line that is not inside a code block. */
  #cut(): void {
    let fence: string | null = null;
    let cutAt = 0;
    let lineStart = 0;
    let blockStart = 0;
    for (let end = this.#tail.indexOf("\n"); end !== -1; end = this.#tail.indexOf("\n", lineStart)) {
      const line = this.#tail.slice(lineStart, end);
      const mark = FENCE.exec(line)?.[1] ?? null;
      lineStart = end + 1;
      if (fence !== null) {
        if (mark?.startsWith(fence) && line.trim() === mark) {
          fence = null;
        }
      } else if (mark !== null) {
        fence = mark;
      } else if (line.trim() === "") {
        const block = this.#tail.slice(blockStart, end);
        if (block.trim() !== "") {
          this.blocks.push(block);
        }
        blockStart = lineStart;
        cutAt = lineStart;
      }
    }
    this.#tail = this.#tail.slice(cutAt);
  }
}
