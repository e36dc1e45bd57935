// What every row of a conversation can do: open itself, be linked to, be forked from, and show its output.
import { createContext, use } from "react";

import type { LogEvent } from "../log/events";
import type { LogItem } from "../log/items";
import type { ToolCall } from "../log/tool-calls";

export interface ConversationActions {
  sessionId: string;
  mayOperate: boolean;
  mayApprove: boolean;
  toggle: (key: string) => void;
  copyLink: (event: LogEvent) => void;
  fork: (item: LogItem) => void;
  showOutput: (call: ToolCall) => void;
}

export const ConversationContext = createContext<ConversationActions | null>(null);
/** The rows that are open. It outlives the rows, which exist only while they are on the screen. */
export const OpenRowsContext = createContext<ReadonlySet<string>>(new Set());

export function useConversation(): ConversationActions {
  const actions = use(ConversationContext);
  if (actions === null) {
    throw new Error("a row is outside of a conversation");
  }
  return actions;
}

export function useIsOpen(key: string): boolean {
  return use(OpenRowsContext).has(key);
}

export function toggled(keys: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(keys);
  if (!next.delete(key)) {
    next.add(key);
  }
  return next;
}
