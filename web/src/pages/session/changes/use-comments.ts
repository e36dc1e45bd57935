// The comments on a session's diff: drafts, what was sent, and what became of it.
import { useQuery, useQueryClient } from "@tanstack/react-query";

import { api, request, required } from "@/api/client";
import type { Listing } from "@/api/contract";
import { meQuery } from "@/api/queries/me";
import { showToast } from "@/design/components/toast";
import { changesKeys, type Comment, commentsQuery } from "./queries";
import type { Lines, Turn } from "./ranges";

const NO_COMMENTS: readonly Comment[] = [];

export interface CommentTarget {
  turnId: string | null;
  projectId: string | null;
  path: string;
  lines: Lines;
}

export type Comments = ReturnType<typeof useComments>;

export function useComments(sessionId: string) {
  const queries = useQueryClient();
  const { data: me } = useQuery(meQuery);
  const { data, error } = useQuery(commentsQuery(sessionId));
  const all = data ?? NO_COMMENTS;

  function change(update: (comments: readonly Comment[]) => readonly Comment[]): void {
    queries.setQueryData(changesKeys.comments(sessionId), (comments: Comment[] | undefined) => [
      ...update(comments ?? []),
    ]);
  }

  /** Returns whether it succeeded. A refusal is shown with what to do. */
  async function attempt(title: string, task: () => Promise<void>): Promise<boolean> {
    try {
      await task();
      return true;
    } catch (failure) {
      showToast({ title, description: failure instanceof Error ? failure.message : String(failure), tone: "failed" });
      return false;
    } finally {
      void queries.invalidateQueries({ queryKey: changesKeys.comments(sessionId) });
    }
  }

  return {
    all,
    error,
    drafts: all.filter((comment) => comment.sent_event_id === null),
    /** Drafts that the caller can change and send. */
    own: all.filter((comment) => comment.sent_event_id === null && comment.author.id === me?.id),
    isOwn: (comment: Comment): boolean => comment.author.id === me?.id,

    add: (target: CommentTarget, body: string): Promise<Comment | null> =>
      new Promise((resolve) => {
        let added: Comment | null = null;
        void attempt("The comment was not saved", async () => {
          const comment = required(
            await api.POST("/v1/sessions/{session_id}/comments", {
              params: { path: { session_id: sessionId } },
              body: {
                turn_id: target.turnId,
                project_id: target.projectId,
                path: target.path,
                side: target.lines.side,
                start_line: target.lines.start,
                end_line: target.lines.end,
                body,
              },
            }),
          );
          change((comments) => [...comments.filter((one) => one.id !== comment.id), comment]);
          added = comment;
        }).then(() => {
          resolve(added);
        });
      }),

    edit: (comment: Comment, body: string): Promise<boolean> =>
      attempt("The comment was not changed", async () => {
        const edited = required(
          await api.POST("/v1/sessions/{session_id}/comments/{comment_id}", {
            params: { path: { session_id: sessionId, comment_id: comment.id } },
            body: { body },
          }),
        );
        change((comments) => comments.map((one) => (one.id === edited.id ? edited : one)));
      }),

    remove: (comment: Comment): Promise<boolean> => {
      change((comments) => comments.filter((one) => one.id !== comment.id));
      return attempt("The comment was not deleted", async () => {
        await api.DELETE("/v1/sessions/{session_id}/comments/{comment_id}", {
          params: { path: { session_id: sessionId, comment_id: comment.id } },
        });
      });
    },

    send: (comments: readonly Comment[]): Promise<boolean> =>
      attempt("The comments were not sent", async () => {
        const sent = required(
          await api.POST("/v1/sessions/{session_id}/comments/send", {
            params: { path: { session_id: sessionId } },
            body: { comment_ids: comments.map((comment) => comment.id), when_busy: "queue" },
          }),
        );
        const byId = new Map(sent.comments.map((comment) => [comment.id, comment]));
        change((known) => known.map((one) => byId.get(one.id) ?? one));
        void queries.invalidateQueries({ queryKey: changesKeys.turns(sessionId) });
        showToast({
          title:
            sent.comments.length === 0
              ? "These comments were already sent"
              : sent.comments.length === 1
                ? "1 comment sent to the agent"
                : `${sent.comments.length} comments sent to the agent in one message`,
          timeout: 3_000,
        });
      }),
  };
}

export type CommentState =
  | { kind: "draft" }
  | { kind: "waiting" }
  | { kind: "working"; turn: Turn; number: number }
  | { kind: "answered"; turn: Turn; number: number };

interface MessageEvent {
  id: string;
  processed_at?: string | null;
}

/** The turn that has the message of a sent comment, and how far it is. */
export function useCommentState(sessionId: string, comment: Comment, turns: readonly Turn[]): CommentState {
  const eventId = comment.sent_event_id;
  const started = turns.findIndex((turn) => turn.input_event_id === eventId);
  // A message that joined a running turn starts none: the time when it was processed shows which turn it is.
  const { data } = useQuery({
    queryKey: [...changesKeys.comments(sessionId), "message", eventId, turns.length, turns.at(-1)?.status],
    queryFn: async ({ signal }) => {
      const sentAt = comment.sent_at ?? comment.created_at;
      const found = await request<Listing<MessageEvent>>(
        "GET",
        `/v1/sessions/${encodeURIComponent(sessionId)}/events`,
        { query: { "types[]": "user.message", "created_at[gte]": sentAt, limit: 20 }, signal },
      );
      return found.data.find((event) => event.id === eventId)?.processed_at ?? null;
    },
    enabled: eventId !== null && started === -1 && turns.length > 0,
  });
  if (eventId === null) {
    return { kind: "draft" };
  }
  const index = started === -1 ? turnAt(turns, data ?? null) : started;
  const turn = turns[index];
  if (turn === undefined) {
    return { kind: "waiting" };
  }
  return { kind: turn.ended_at === null ? "working" : "answered", turn, number: index + 1 };
}

function turnAt(turns: readonly Turn[], time: string | null): number {
  return time === null
    ? -1
    : turns.findLastIndex((turn) => turn.started_at !== null && Date.parse(turn.started_at) <= Date.parse(time));
}
