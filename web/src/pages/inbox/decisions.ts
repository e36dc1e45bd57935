// Decides, answers, dismisses, snoozes and assigns items: at once in the page, and taken back if the server refuses.
import { type InfiniteData, useQueryClient } from "@tanstack/react-query";

import { api, request } from "@/api/client";
import type { InboxItem, Listing } from "@/api/contract";
import { keys } from "@/api/keys";
import { dismissInboxItem, updateInboxItem } from "@/api/queries/inbox";
import { showToast } from "@/design/components/toast";
import { formatRelative } from "@/design/format";

type Lists = InfiniteData<Listing<InboxItem>>;
type Decision = { result: "allow" | "deny" } & {
  deny_message?: string;
  session_rule?: string;
  updated_input?: Record<string, unknown>;
};

/** Items that this window has decided: their disappearance needs no note. */
const ownDecisions = new Set<string>();

export function wasDecidedHere(id: string): boolean {
  return ownDecisions.has(id);
}

export function useDecisions(onGone: (item: InboxItem) => void) {
  const queries = useQueryClient();

  /** Removes the item from every list, then asks the server. Puts it back if that fails. */
  async function decide(item: InboxItem, title: string, send: () => Promise<unknown>): Promise<boolean> {
    ownDecisions.add(item.id);
    onGone(item);
    await queries.cancelQueries({ queryKey: [...keys.inbox, "list"] });
    const before = queries.getQueriesData<Lists>({ queryKey: [...keys.inbox, "list"] });
    queries.setQueriesData<Lists>({ queryKey: [...keys.inbox, "list"] }, (lists) => withoutItem(lists, item.id));
    try {
      await send();
      return true;
    } catch (error) {
      ownDecisions.delete(item.id);
      for (const [key, lists] of before) {
        queries.setQueryData(key, lists);
      }
      showToast({ title, description: error instanceof Error ? error.message : String(error), tone: "failed" });
      return false;
    } finally {
      void queries.invalidateQueries({ queryKey: keys.inbox });
    }
  }

  async function confirm(item: InboxItem, decision: Decision): Promise<void> {
    const done = await decide(item, "The decision was not accepted", () =>
      api.POST("/v1/sessions/{session_id}/events", {
        params: { path: { session_id: item.session.id } },
        body: {
          events: [
            {
              type: "user.tool_confirmation",
              tool_use_id: item.id,
              deny_message: null,
              session_rule: null,
              updated_input: null,
              ...decision,
            },
          ],
        } as never,
      }),
    );
    if (done) {
      showToast({ title: decision.result === "allow" ? "Allowed" : "Denied", description: item.title, timeout: 2_500 });
    }
  }

  async function answer(item: InboxItem, answers: Record<string, string | string[]>): Promise<void> {
    const done = await decide(item, "The answer was not accepted", () =>
      request("POST", `/v1/questions/${encodeURIComponent(item.id)}/answer`, { body: { answers } }),
    );
    if (done) {
      showToast({ title: "Answered", description: item.title, timeout: 2_500 });
    }
  }

  async function message(item: InboxItem, text: string): Promise<void> {
    const done = await decide(item, "The message was not sent", () =>
      request("POST", `/v1/sessions/${encodeURIComponent(item.session.id)}/events`, {
        body: { events: [{ type: "user.message", content: [{ type: "text", text }] }] },
      }),
    );
    if (done) {
      showToast({ title: "Sent. The session continues.", timeout: 2_500 });
    }
  }

  async function dismiss(item: InboxItem): Promise<void> {
    const done = await decide(item, "The item was not dismissed", () => dismissInboxItem(item.id));
    if (done) {
      showToast({ title: "Dismissed", description: item.title, timeout: 2_500 });
    }
  }

  async function snooze(item: InboxItem, until: Date | null): Promise<void> {
    const before = item.snoozed_until;
    const done = await decide(item, "The item was not snoozed", () =>
      updateInboxItem(item.id, { snoozed_until: until?.toISOString() ?? null }),
    );
    // It comes back by itself, and then it is news again.
    ownDecisions.delete(item.id);
    if (done) {
      showToast({
        title: until === null ? "The item is back" : `Snoozed, back ${formatRelative(until, new Date())}`,
        description: item.title,
        action: { label: "Undo", onClick: () => void change(item, { snoozed_until: before }) },
      });
    }
  }

  async function change(item: InboxItem, update: Parameters<typeof updateInboxItem>[1]): Promise<boolean> {
    try {
      await updateInboxItem(item.id, update);
      return true;
    } catch (error) {
      showToast({
        title: "The item was not changed",
        description: error instanceof Error ? error.message : String(error),
        tone: "failed",
      });
      return false;
    } finally {
      void queries.invalidateQueries({ queryKey: keys.inbox });
    }
  }

  async function assign(item: InboxItem, member: { id: string; name: string } | null): Promise<void> {
    const before = item.assignee?.id ?? null;
    if (await change(item, { assignee_id: member?.id ?? null })) {
      showToast({
        title: member === null ? "Assigned to nobody" : `Assigned to ${member.name}`,
        description: item.title,
        action: { label: "Undo", onClick: () => void change(item, { assignee_id: before }) },
      });
    }
  }

  return { confirm, answer, message, dismiss, snooze, assign };
}

export type Decisions = ReturnType<typeof useDecisions>;

function withoutItem(lists: Lists | undefined, id: string): Lists | undefined {
  return lists === undefined
    ? undefined
    : {
        ...lists,
        pages: lists.pages.map((page) => ({ ...page, data: page.data.filter((item) => item.id !== id) })),
      };
}
