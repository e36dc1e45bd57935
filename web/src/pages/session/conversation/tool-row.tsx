// A tool call in one line: name, argument, what happened and how long it took. Opened, its input and output.
import { ChevronRight, Maximize2 } from "lucide-react";

import { cn } from "@/design/classes";
import { Button } from "@/design/components/button";
import { useNow } from "@/design/components/time";
import { formatDuration } from "@/design/format";
import { CodeBlock, SafeText } from "@/design/text/text";
import { describeLayer } from "@/pages/inbox/describe";
import { ToolCall as CallInput } from "@/pages/inbox/tool-call";

import { attachmentsOf, objectField, textField, timeOf } from "../log/events";
import type { ToolItem } from "../log/items";
import { callLabel, inputOf, type ToolCall, toolName } from "../log/tool-calls";
import { Attachments } from "./attachments";
import { CallMark } from "./call-mark";
import { useConversation, useIsOpen } from "./context";
import { DecisionPanel } from "./decision-panel";
import { excerpt, outputOf } from "./output";
import { Subagent } from "./subagent";

const SHOWN_LINES = 14;

export function ToolRow({ item }: { item: ToolItem }) {
  const { toggle } = useConversation();
  const isOpen = useIsOpen(item.key);
  const { call } = item;
  const isWaiting = call.status === "waiting_approval" || call.status === "waiting_answer";
  const label = callLabel(inputOf(call)).replace(/\s+/g, " ").slice(0, 400);
  return (
    <div>
      <button
        type="button"
        aria-expanded={isOpen}
        className="flex h-8 w-full min-w-0 items-center gap-2 rounded-md text-left hover:bg-hover max-md:h-10"
        onClick={() => {
          toggle(item.key);
        }}
      >
        <ChevronRight
          aria-hidden
          className={cn("size-4 shrink-0 text-muted transition-transform", isOpen && "rotate-90")}
        />
        <SafeText className="max-w-48 shrink-0 truncate font-mono text-sm font-medium">{toolName(call.use)}</SafeText>
        <SafeText className="min-w-0 flex-1 truncate font-mono text-sm text-muted">{label}</SafeText>
        <CallMark status={call.status} />
        <CallDuration call={call} />
      </button>
      {!isOpen && call.status === "failed" && (
        <SafeText className="block truncate pb-1 pl-6 text-sm text-muted">{excerpt(call)}</SafeText>
      )}
      {call.status === "unknown" && <UnknownOutcome call={call} />}
      {isOpen && (isWaiting ? <DecisionPanel eventId={call.use.id} /> : <Details call={call} />)}
      {call.thread !== null && <Subagent thread={call.thread} itemKey={`${item.key}.thread`} />}
    </div>
  );
}

function CallDuration({ call }: { call: ToolCall }) {
  const isRunning = call.status === "running";
  const now = useNow(isRunning ? 1000 : 3_600_000);
  const start = timeOf(call.decision) ?? timeOf(call.use);
  const seconds = isRunning && start !== null ? Math.max(0, Math.floor((now - start) / 1000)) : call.seconds;
  return (
    <span className="w-14 shrink-0 text-right text-sm text-muted">
      {seconds === null || call.status === "denied" ? "" : isRunning && seconds < 1 ? "0 s" : formatDuration(seconds)}
    </span>
  );
}

function UnknownOutcome({ call }: { call: ToolCall }) {
  return (
    <p className="mb-1 ml-6 rounded-md bg-waiting-soft px-3 py-2 text-sm">
      <span className="font-medium text-waiting">It is not known whether this call took effect.</span> Its worker was
      lost while it ran. Before it is repeated, check{" "}
      {toolName(call.use).toLowerCase() === "bash" ? "what the command would have changed" : "its effect"}; the tab
      Changes shows the files.
    </p>
  );
}

function Details({ call }: { call: ToolCall }) {
  const { showOutput } = useConversation();
  const output = outputOf(call);
  const lines = output.split("\n");
  const isLong = lines.length > SHOWN_LINES || output.length > 4_000;
  const edited = objectField(call.decision, "updated_input") !== null;
  return (
    <div className="ml-2 flex flex-col gap-2 border-l pt-1 pb-2 pl-4">
      <CallInput name={toolName(call.use)} input={{ ...inputOf(call) }} />
      {edited && <p className="text-sm text-waiting">A person edited this call before it ran.</p>}
      <Permission call={call} />
      {output !== "" && (
        <CodeBlock label="Output" className="max-h-80 break-words whitespace-pre-wrap">
          {isLong ? shorten(lines) : output}
        </CodeBlock>
      )}
      {call.result !== null && <Attachments attachments={attachmentsOf(call.result)} />}
      {isLong && (
        <div>
          <Button
            size="sm"
            onClick={() => {
              showOutput(call);
            }}
          >
            <Maximize2 aria-hidden /> Open all {lines.length.toLocaleString()} lines
          </Button>
        </div>
      )}
    </div>
  );
}

/** The last lines say how it ended. */
function shorten(lines: readonly string[]): string {
  const shown = lines.slice(-SHOWN_LINES).map((line) => (line.length > 400 ? `${line.slice(0, 400)} …` : line));
  const hidden = lines.length - shown.length;
  return hidden > 0 ? `… ${hidden.toLocaleString()} earlier lines\n${shown.join("\n")}` : shown.join("\n");
}

function Permission({ call }: { call: ToolCall }) {
  const permission = objectField(call.use, "permission");
  const rule = textField(permission, "rule");
  const layer = textField(permission, "layer");
  const denial = textField(call.decision, "deny_message");
  const asked = call.use["evaluated_permission"] === "ask";
  const words = asked ? "asked because of" : call.use["evaluated_permission"] === "deny" ? "denied by" : "allowed by";
  return (
    <>
      {rule !== null && (
        <p className="text-sm text-muted">
          {words} the rule <SafeText className="rounded-sm bg-code px-1 font-mono">{rule}</SafeText>{" "}
          {layer !== null && describeLayer(layer)}
          {call.decision !== null && ` · ${call.decision["result"] === "allow" ? "allowed" : "denied"} by a person`}
        </p>
      )}
      {denial !== null && (
        <p className="text-sm">
          Told to the agent: <SafeText>{denial}</SafeText>
        </p>
      )}
    </>
  );
}
