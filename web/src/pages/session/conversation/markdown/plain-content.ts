// Turns what Markdown may contain into what the page shows: HTML becomes text, and hidden characters are marked.
import { splitHidden } from "@/design/text/safe-text";

interface Node {
  type: string;
  tagName?: string;
  value?: string;
  properties?: Record<string, unknown>;
  children?: Node[];
}

const MARK_CLASS = "mx-px rounded-sm bg-waiting-soft px-0.5 font-mono text-[0.85em] text-waiting";

/** A plugin of rehype. It does not descend into code, which marks hidden characters itself. */
export function plainContent(): (tree: Node) => void {
  return visit;
}

function visit(node: Node): void {
  if (node.children === undefined) {
    return;
  }
  node.children = node.children.flatMap((child) => {
    if (child.type === "raw") {
      return split(child.value ?? "");
    }
    if (child.type === "text") {
      return split(child.value ?? "");
    }
    if (child.type === "comment" || child.type === "doctype") {
      return [];
    }
    if (child.tagName !== "code") {
      visit(child);
    }
    return [child];
  });
}

function split(text: string): Node[] {
  return splitHidden(text).map((part) =>
    part.mark === null
      ? { type: "text", value: part.text }
      : {
          type: "element",
          tagName: "span",
          properties: { className: MARK_CLASS, title: `Hidden character ${part.mark}` },
          children: [{ type: "text", value: part.mark }],
        },
  );
}
