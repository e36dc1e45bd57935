// Text of models, users and repositories: escaped, isolated from the direction of its surroundings, hidden characters
// marked.
import { useMemo } from "react";

import { cn } from "../classes";
import { splitHidden } from "./safe-text";

const LONGEST = 20_000;

interface SafeTextProps {
  children: string;
  className?: string;
  /** More characters than this are cut, and the cut is stated. A view that must show everything passes Infinity. */
  limit?: number;
}

export function SafeText({ children, className, limit = LONGEST }: SafeTextProps) {
  const shown = children.length > limit ? children.slice(0, limit) : children;
  const parts = useMemo(() => splitHidden(shown), [shown]);
  return (
    <bdi className={className}>
      {parts.map((part, index) =>
        part.mark === null ? (
          part.text
        ) : (
          <span
            key={index}
            title={`Hidden character ${part.mark}`}
            className="mx-px rounded-sm bg-waiting-soft px-0.5 font-mono text-[0.85em] text-waiting"
          >
            {part.mark}
          </span>
        ),
      )}
      {shown.length < children.length && (
        <span className="text-muted"> … {(children.length - shown.length).toLocaleString()} more characters</span>
      )}
    </bdi>
  );
}

/** A message of the server: the commands that it puts between backticks are set as code. */
export function MessageText({ children }: { children: string }) {
  const parts = children.split("`");
  const isPaired = parts.length % 2 === 1;
  return (
    <>
      {(isPaired ? parts : [children]).map((part, index) =>
        index % 2 === 1 ? (
          <code key={index} className="rounded-sm bg-code px-1 font-mono text-[0.9em]">
            <SafeText>{part}</SafeText>
          </code>
        ) : (
          part !== "" && <SafeText key={index}>{part}</SafeText>
        ),
      )}
    </>
  );
}

/** Preformatted text in its own scrolling box: long lines never widen the page. */
export function CodeBlock({
  children,
  className,
  label = "Code",
}: {
  children: string;
  className?: string;
  label?: string;
}) {
  return (
    <pre
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a box that scrolls must be reachable by keyboard
      tabIndex={0}
      role="region"
      aria-label={label}
      className={cn("max-h-96 overflow-auto rounded-md bg-code p-3 font-mono text-sm whitespace-pre", className)}
    >
      <SafeText limit={Number.POSITIVE_INFINITY}>{children}</SafeText>
    </pre>
  );
}
