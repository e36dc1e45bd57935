// Markdown of models and users: no HTML, no remote images, no links but to web pages and mail addresses.
import { Component, type ComponentProps, memo, type ReactNode } from "react";
import { type Components, Streamdown } from "streamdown";

import { SafeText } from "@/design/text/text";

import { Code } from "./code";
import { isTooHard } from "./cost";
import { readLink } from "./links";
import { plainContent } from "./plain-content";
import "./markdown.css";

export const Markdown = memo(function Markdown({ children }: { children: string }) {
  if (isTooHard(children)) {
    return <Plain>{children}</Plain>;
  }
  return (
    <Fallback key={children} text={children}>
      <Streamdown
        mode="static"
        dir="auto"
        className="markdown"
        components={COMPONENTS}
        rehypePlugins={PLUGINS}
        controls={false}
        linkSafety={NO_DIALOG}
        parseIncompleteMarkdown={false}
      >
        {children}
      </Streamdown>
    </Fallback>
  );
});

const PLUGINS = [plainContent];
const NO_DIALOG = { enabled: false };

/** The text as it is, with its lines. */
export function Plain({ children }: { children: string }) {
  return <SafeText className="block break-words whitespace-pre-wrap [overflow-wrap:anywhere]">{children}</SafeText>;
}

class Fallback extends Component<{ text: string; children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError(): { hasFailed: boolean } {
    return { hasFailed: true };
  }

  override render(): ReactNode {
    return this.state.hasFailed ? <Plain>{this.props.text}</Plain> : this.props.children;
  }
}

function Link({ href, children }: ComponentProps<"a">) {
  const link = readLink(href);
  if (link === null) {
    return <span title="This link cannot be opened">{children}</span>;
  }
  const isShown = textOf(children).includes(link.host);
  return (
    <a href={link.href} target="_blank" rel="noopener noreferrer" className="text-accent underline underline-offset-2">
      {children}
      {!isShown && <span className="text-sm text-muted no-underline"> ({link.host})</span>}
    </a>
  );
}

/** A picture of a message could tell its author who reads it, so only its description is shown. */
function Picture({ src, alt }: ComponentProps<"img">) {
  const link = readLink(src);
  return (
    <span className="rounded-sm border px-1 text-sm text-muted" title="Pictures from other sites are not loaded">
      Image{alt === undefined || alt === "" ? "" : `: ${alt}`}
      {link !== null && ` (${link.host})`}
    </span>
  );
}

function InlineCode({ children }: ComponentProps<"code">) {
  return (
    <code className="rounded-sm bg-code px-1 py-px font-mono text-[0.93em] [overflow-wrap:anywhere]">
      <SafeText>{textOf(children)}</SafeText>
    </code>
  );
}

function Block({ children }: ComponentProps<"pre">) {
  const code = findCode(children);
  const language = /language-([^\s]+)/.exec(code.className)?.[1] ?? "";
  return <Code code={code.text.replace(/\n$/, "")} language={language} />;
}

function Table({ children }: ComponentProps<"table">) {
  return (
    <div className="my-3 overflow-x-auto">
      <table>{children}</table>
    </div>
  );
}

const COMPONENTS = {
  a: Link,
  img: Picture,
  pre: Block,
  code: InlineCode,
  inlineCode: InlineCode,
  table: Table,
  // Plain elements, because those of the library have colours of their own.
  ...Object.fromEntries(
    ["h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "blockquote", "hr", "strong", "em", "del"].map(
      (name) => [name, name],
    ),
  ),
  ...Object.fromEntries(["thead", "tbody", "tr", "th", "td", "sup", "sub", "section"].map((name) => [name, name])),
} as Components;

function textOf(node: ReactNode): string {
  if (typeof node === "string" || typeof node === "number") {
    return String(node);
  }
  if (Array.isArray(node)) {
    return node.map((one: ReactNode) => textOf(one)).join("");
  }
  return isElement(node) ? textOf(node.props.children) : "";
}

function findCode(node: ReactNode): { text: string; className: string } {
  const element = Array.isArray(node) ? (node as ReactNode[]).find((one) => isElement(one)) : node;
  return isElement(element)
    ? { text: textOf(element.props.children), className: element.props.className ?? "" }
    : { text: textOf(node), className: "" };
}

interface ElementLike {
  props: { children?: ReactNode; className?: string };
}

function isElement(node: unknown): node is ElementLike {
  return typeof node === "object" && node !== null && "props" in node;
}
