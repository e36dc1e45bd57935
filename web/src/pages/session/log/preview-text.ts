// Text that is still being generated, cut into Markdown blocks that are complete and the rest: a complete block is parsed
// once, however much follows.
const FENCE = /^ {0,3}(`{3,}|~{3,})/;

export class PreviewText {
  readonly blocks: string[] = [];
  #tail = "";
  #length = 0;
  /** Where the first line of the tail that was not read yet begins. */
  #lineStart = 0;
  #fence: string | null = null;

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
    let blockStart = 0;
    for (let end = this.#nextEnd(); end !== -1; end = this.#nextEnd()) {
      const line = this.#tail.slice(this.#lineStart, end);
      const start = this.#lineStart;
      this.#lineStart = end + 1;
      const mark = FENCE.exec(line)?.[1] ?? null;
      if (this.#fence !== null) {
        if (mark?.startsWith(this.#fence) === true && line.trim() === mark) {
          this.#fence = null;
        }
      } else if (mark !== null) {
        this.#fence = mark;
      } else if (line.trim() === "") {
        const block = this.#tail.slice(blockStart, Math.max(blockStart, start - 1));
        if (block.trim() !== "") {
          this.blocks.push(block);
        }
        blockStart = this.#lineStart;
      }
    }
    this.#tail = this.#tail.slice(blockStart);
    this.#lineStart -= blockStart;
  }

  #nextEnd(): number {
    return this.#tail.indexOf("\n", this.#lineStart);
  }
}
