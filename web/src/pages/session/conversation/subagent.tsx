// The thread of a subagent, nested below the call that started it. It is loaded when it is opened.
import { Bot, ChevronRight } from "lucide-react";
import { useEffect, useMemo, useSyncExternalStore } from "react";

import { EventStream } from "@/api/event-stream";
import { createFrameFilter } from "@/api/session-stream";
import { cn } from "@/design/classes";
import { SkeletonRows } from "@/design/components/skeleton";
import { SafeText } from "@/design/text/text";

import { SessionLog } from "../log/session-log";
import type { SubagentThread } from "../log/tool-calls";
import { useConversation, useIsOpen } from "./context";
import { ItemContent } from "./item-content";

export function Subagent({ thread, itemKey }: { thread: SubagentThread; itemKey: string }) {
  const { toggle } = useConversation();
  const isOpen = useIsOpen(itemKey);
  return (
    <section aria-label={`Subagent ${thread.name}`} className="ml-6">
      <button
        type="button"
        aria-expanded={isOpen}
        className="flex h-8 w-full items-center gap-2 rounded-md text-left text-muted hover:bg-hover max-md:h-10"
        onClick={() => {
          toggle(itemKey);
        }}
      >
        <ChevronRight aria-hidden className={cn("size-4 shrink-0 transition-transform", isOpen && "rotate-90")} />
        <Bot aria-hidden className="size-4 shrink-0" />
        <SafeText className="truncate font-medium text-text">{thread.name}</SafeText>
        <span className="text-sm">{thread.isRunning ? "works" : "done"}</span>
      </button>
      {isOpen && <ThreadLog threadId={thread.id} />}
    </section>
  );
}

function ThreadLog({ threadId }: { threadId: string }) {
  const { sessionId } = useConversation();
  const path = `/v1/sessions/${encodeURIComponent(sessionId)}/threads/${encodeURIComponent(threadId)}`;
  const log = useMemo(() => new SessionLog(`${path}/events`, { isThread: true }), [path]);
  const { items, isLoaded, error } = useSyncExternalStore(log.subscribe, log.getSnapshot);
  useEffect(() => {
    void log.load();
  }, [log]);
  useEffect(() => {
    if (!isLoaded) {
      return undefined;
    }
    const after = log.events.lastPosition;
    const stream = new EventStream({
      url: `${path}/stream`,
      after: String(after),
      onFrame: createFrameFilter(after, (frame) => {
        log.receive(frame);
      }),
    });
    stream.open();
    return () => {
      stream.close();
    };
  }, [isLoaded, log, path]);
  if (!isLoaded) {
    return error === null ? (
      <SkeletonRows count={2} />
    ) : (
      <p className="pl-6 text-failed">The work of this subagent could not be loaded.</p>
    );
  }
  return (
    <div className="ml-2 border-l pl-4">
      {items.length === 0 && <p className="py-1 text-muted">Nothing yet.</p>}
      {items.map((item) => (
        <ItemContent key={item.key} item={item} />
      ))}
    </div>
  );
}
