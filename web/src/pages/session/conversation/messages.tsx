// Messages of people and of the agent, and the agent's thinking.
import { Link } from "@tanstack/react-router";
import { ChevronRight, Clock } from "lucide-react";

import { cn } from "@/design/classes";
import { formatDuration } from "@/design/format";
import { SafeText } from "@/design/text/text";

import type { AgentItem, ThinkingItem, UserItem } from "../log/items";
import { bareId } from "../steps/model";
import { Attachments } from "./attachments";
import { useConversation, useIsOpen } from "./context";
import { LongText } from "./long-text";
import { Markdown } from "./markdown/markdown";

export function UserMessage({ item }: { item: UserItem }) {
  const { sessionId } = useConversation();
  return (
    <div className={cn("my-2 rounded-md border bg-surface px-3 py-2", item.isQueued && "border-dashed bg-transparent")}>
      <LongText text={item.text} itemKey={item.key} />
      <Attachments attachments={item.attachments} />
      {item.isQueued && (
        <p className="mt-1 flex items-center gap-1.5 text-sm text-muted">
          <Clock aria-hidden className="size-3.5" /> In the queue.
          <Link
            to="/sessions/$sessionId"
            params={{ sessionId }}
            search={{ tab: "steps", step: `step_${bareId(item.event.id)}` }}
            className="underline hover:text-text"
          >
            Move or remove it
          </Link>
        </p>
      )}
    </div>
  );
}

export function AgentMessage({ item }: { item: AgentItem }) {
  return (
    <div className="py-2">
      <Markdown>{item.text}</Markdown>
      <Attachments attachments={item.attachments} />
    </div>
  );
}

/** Folded to one line: its beginning. */
export function Thinking({ item }: { item: ThinkingItem }) {
  const { toggle } = useConversation();
  const isOpen = useIsOpen(item.key);
  if (item.text.trim() === "") {
    return null;
  }
  return (
    <div className="text-muted">
      <button
        type="button"
        aria-expanded={isOpen}
        className="flex h-8 w-full min-w-0 items-center gap-2 rounded-md text-left hover:bg-hover max-md:h-10"
        onClick={() => {
          toggle(item.key);
        }}
      >
        <ChevronRight aria-hidden className={cn("size-4 shrink-0 transition-transform", isOpen && "rotate-90")} />
        <span className="shrink-0">thinking</span>
        {!isOpen && <SafeText className="min-w-0 truncate text-sm italic">{firstLine(item.text)}</SafeText>}
        {item.seconds !== null && <span className="ml-auto shrink-0 pl-2 text-sm">{formatDuration(item.seconds)}</span>}
      </button>
      {isOpen && (
        <div className="ml-2 border-l pb-1 pl-4">
          <Markdown>{item.text}</Markdown>
        </div>
      )}
    </div>
  );
}

function firstLine(text: string): string {
  return (text.trim().split("\n", 1)[0] ?? "").slice(0, 300);
}
