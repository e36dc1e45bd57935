// Shows exactly what a call would run: whole, escaped, with hidden characters marked.
import { TriangleAlert } from "lucide-react";

import { cn } from "@/design/classes";
import { CodeBlock, SafeText } from "@/design/text/text";
import { countHidden } from "./describe";

interface ToolCallProps {
  name: string;
  input: Record<string, unknown>;
}

const BOX = "max-h-[50vh] overflow-auto rounded-md bg-code font-mono text-sm";

export function ToolCall({ name, input }: ToolCallProps) {
  const hidden = countHidden(input);
  const { command, old_string: before, new_string: after, ...others } = input;
  const isEdit = typeof before === "string" && typeof after === "string";
  const rest = { ...(isEdit ? others : { ...others, ...pick({ old_string: before, new_string: after }) }) };
  if (typeof command !== "string" && command !== undefined) {
    rest["command"] = command;
  }
  return (
    <div className="flex flex-col gap-2" data-testid="call">
      <p className="text-sm text-muted">
        Tool <SafeText className="font-mono text-text">{name}</SafeText>
      </p>
      {typeof command === "string" && <Command text={command} />}
      {Object.entries(rest).map(([field, value]) => (
        <Value key={field} name={field} value={value} />
      ))}
      {isEdit && <Replacement before={before} after={after} />}
      {hidden > 0 && (
        <p className="flex items-start gap-2 rounded-md bg-waiting-soft px-3 py-2 text-waiting">
          <TriangleAlert aria-hidden className="mt-0.5 size-4 shrink-0" />
          {hidden === 1
            ? "This call has a character that you cannot see. Its place is marked."
            : `This call has ${hidden.toLocaleString()} characters that you cannot see. Their places are marked.`}
        </p>
      )}
    </div>
  );
}

function pick(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

function Command({ text }: { text: string }) {
  return (
    <pre
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a box that scrolls must be reachable by keyboard
      tabIndex={0}
      role="region"
      aria-label="Command"
      className={cn(BOX, "flex gap-2 p-3 whitespace-pre-wrap [overflow-wrap:anywhere]")}
    >
      <span aria-hidden className="text-faint select-none">
        $
      </span>
      <SafeText className="min-w-0 flex-1" limit={Number.POSITIVE_INFINITY}>
        {text}
      </SafeText>
    </pre>
  );
}

function Value({ name, value }: { name: string; value: unknown }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const isShort = text.length <= 200 && !text.includes("\n");
  return (
    <div className={cn(isShort && "flex flex-wrap items-baseline gap-x-2")}>
      <SafeText className="text-sm text-muted">{name}</SafeText>
      {isShort ? (
        <SafeText className="min-w-0 font-mono text-sm break-all" limit={Number.POSITIVE_INFINITY}>
          {text}
        </SafeText>
      ) : (
        <CodeBlock label={name} className="mt-1 max-h-[50vh] break-words whitespace-pre-wrap">
          {text}
        </CodeBlock>
      )}
    </div>
  );
}

/** The text that an edit removes, and the text that it puts there. */
function Replacement({ before, after }: { before: string; after: string }) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a box that scrolls must be reachable by keyboard
    <div tabIndex={0} role="region" aria-label="Change" className={BOX}>
      {[
        { text: before, mark: "−", title: "Removed", color: "bg-removed" },
        { text: after, mark: "+", title: "Added", color: "bg-added" },
      ].map(({ text, mark, title, color }) => (
        <pre key={mark} className={cn("flex gap-2 px-3 py-2 whitespace-pre-wrap", color)}>
          <span className="text-muted select-none">
            <span aria-hidden>{mark}</span>
            <span className="sr-only">{title}</span>
          </span>
          <SafeText className="min-w-0 flex-1 break-words" limit={Number.POSITIVE_INFINITY}>
            {text}
          </SafeText>
        </pre>
      ))}
    </div>
  );
}
