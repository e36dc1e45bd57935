// What a conversation shows: messages, thinking, tool calls with their results, and notices, in order.
import { type Attachment, attachmentsOf, type LogEvent, objectField, textField, textOf, timeOf } from "./events";
import { describeNotice, type Notice } from "./notices";
import {
  CALL_TYPES,
  callIdOf,
  callSeconds,
  callStatus,
  RESULT_TYPES,
  type SubagentThread,
  type ToolCall,
} from "./tool-calls";

interface ItemBase {
  /** Stable while the log grows: the id of the first event. */
  key: string;
  event: LogEvent;
}

export interface UserItem extends ItemBase {
  kind: "user";
  text: string;
  attachments: readonly Attachment[];
  isQueued: boolean;
}

export interface AgentItem extends ItemBase {
  kind: "agent";
  text: string;
  attachments: readonly Attachment[];
}

export interface ThinkingItem extends ItemBase {
  kind: "thinking";
  text: string;
  seconds: number | null;
}

export interface ToolItem extends ItemBase {
  kind: "tool";
  call: ToolCall;
}

export interface NoticeItem extends ItemBase {
  kind: "notice";
  notice: Notice;
}

export type LogItem = UserItem | AgentItem | ThinkingItem | ToolItem | NoticeItem;

/** Items of an earlier build, so that those without a change stay the same objects and are not rendered again. */
export type ItemCache = Map<string, LogItem>;

const IDLE_TYPES = new Set(["session.status_idle", "session.status_terminated"]);

interface BuildOptions {
  cache?: ItemCache;
  /** A thread of a subagent, whose task is a message of another agent. */
  isThread?: boolean;
}

export function buildItems(
  events: readonly LogEvent[],
  { cache = new Map(), isThread = false }: BuildOptions = {},
): LogItem[] {
  const { results, decisions, threads } = indexEvents(events);
  const lastEnd = findLastEnd(events);
  const forkPosition = findForkPosition(events);
  const items: LogItem[] = [];
  let requestStart: LogEvent | null = null;
  for (const [index, event] of events.entries()) {
    if (event.type === "span.model_request_start") {
      requestStart = event;
    }
    // A message that waited when the session was forked stays with the parent.
    const staysBehind = event.processed_at === null && event.position < forkPosition;
    const item = staysBehind ? null : buildItem(event);
    if (item !== null) {
      items.push(item);
    }

    function buildItem(one: LogEvent): LogItem | null {
      if (one.type === "user.message" || (isThread && one.type === "agent.thread_message_received")) {
        return reuse(cache, one, [one], () => ({
          kind: "user",
          key: one.id,
          event: one,
          text: textOf(one),
          attachments: attachmentsOf(one),
          isQueued: one.processed_at === null,
        }));
      }
      if (one.type === "agent.message") {
        return reuse(cache, one, [one], () => ({
          kind: "agent",
          key: one.id,
          event: one,
          text: textOf(one),
          attachments: attachmentsOf(one),
        }));
      }
      if (one.type === "agent.thinking") {
        const start = requestStart;
        return reuse(cache, one, [one, start], () => ({
          kind: "thinking",
          key: one.id,
          event: one,
          text: textField(one, "thinking") ?? textOf(one),
          seconds: secondsBetween(start, one),
        }));
      }
      if (CALL_TYPES.has(one.type)) {
        const parts = {
          use: one,
          result: results.get(one.id) ?? null,
          decision: decisions.get(one.id) ?? null,
          hasEnded: lastEnd > index,
        };
        const thread = threads.get(textField(one, "call_id") ?? "") ?? null;
        const status = callStatus(parts);
        return reuse(cache, one, [one, parts.result, parts.decision, thread?.isRunning, status], () => ({
          kind: "tool",
          key: one.id,
          event: one,
          call: {
            use: one,
            result: parts.result,
            decision: parts.decision,
            thread,
            status,
            seconds: callSeconds(one, parts.result, parts.decision),
          },
        }));
      }
      const notice = describeNotice(one, events, index);
      return notice === null
        ? null
        : reuse(cache, one, [one, notice.title], () => ({ kind: "notice", key: one.id, event: one, notice }));
    }
  }
  return items;
}

const fingerprints = new WeakMap<LogItem, readonly unknown[]>();

function reuse(cache: ItemCache, event: LogEvent, parts: readonly unknown[], build: () => LogItem): LogItem {
  const known = cache.get(event.id);
  const before = known === undefined ? undefined : fingerprints.get(known);
  if (known !== undefined && before?.length === parts.length && before.every((part, index) => part === parts[index])) {
    return known;
  }
  const item = build();
  cache.set(event.id, item);
  fingerprints.set(item, parts);
  return item;
}

function indexEvents(events: readonly LogEvent[]) {
  const results = new Map<string, LogEvent>();
  const decisions = new Map<string, LogEvent>();
  const threads = new Map<string, SubagentThread>();
  const byThread = new Map<string, SubagentThread>();
  for (const event of events) {
    const call = callIdOf(event);
    if (call !== null && RESULT_TYPES.has(event.type)) {
      results.set(call, event);
    } else if (call !== null && event.type === "user.tool_confirmation") {
      decisions.set(call, event);
    } else if (event.type.startsWith("session.thread_")) {
      const id = textField(event, "session_thread_id") ?? "";
      if (event.type === "session.thread_created") {
        const thread = { id, name: textField(event, "agent_name") ?? "subagent", isRunning: true };
        byThread.set(id, thread);
        threads.set(textField(event, "call_id") ?? "", thread);
        continue;
      }
      const thread = byThread.get(id);
      if (thread !== undefined) {
        thread.isRunning =
          event.type === "session.thread_status_running" ||
          objectField(event, "stop_reason")?.["type"] === "requires_action";
      }
    }
  }
  return { results, decisions, threads };
}

/** The index of the last event after which no earlier call can get a result. */
function findLastEnd(events: readonly LogEvent[]): number {
  return events.findLastIndex(
    (event) => IDLE_TYPES.has(event.type) && objectField(event, "stop_reason")?.["type"] !== "requires_action",
  );
}

/** The position of the event with which a fork begins. 0: not a fork. */
function findForkPosition(events: readonly LogEvent[]): number {
  return events.findLast((event) => objectField(event, "forked_from") !== null)?.position ?? 0;
}

function secondsBetween(start: LogEvent | null, end: LogEvent): number | null {
  const from = timeOf(start);
  const to = timeOf(end);
  return from === null || to === null || to < from ? null : (to - from) / 1000;
}

/** All events that an item shows, for links to them. */
export function eventIdsOf(item: LogItem): string[] {
  if (item.kind !== "tool") {
    return [item.event.id];
  }
  const { use, result, decision } = item.call;
  return [use, result, decision].flatMap((event) => (event === null ? [] : [event.id]));
}

/** The last event that an item shows. A fork after it has all of the item. */
/** The item before this one that a fork can end with. Undefined: it is the first one that is loaded. */
export function itemBefore(items: readonly LogItem[], item: LogItem): LogItem | undefined {
  const at = items.indexOf(item);
  return items
    .slice(0, Math.max(at, 0))
    .findLast((one) => one.kind !== "notice" && !(one.kind === "user" && one.isQueued));
}

export function lastEventOf(item: LogItem): LogEvent {
  return item.kind === "tool" ? (item.call.result ?? item.call.decision ?? item.call.use) : item.event;
}
