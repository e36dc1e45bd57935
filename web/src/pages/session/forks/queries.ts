// Reads the family of a session: up to its oldest ancestor, and from there all forks, with the turns where they start.
import { queryOptions, useQueryClient } from "@tanstack/react-query";
import { useEffect, useEffectEvent } from "react";

import { api, request, required } from "@/api/client";
import type { Listing } from "@/api/contract";
import { ApiError } from "@/api/errors";
import { onFeedChange } from "@/api/feed";
import { keys } from "@/api/keys";
import { sessionQuery } from "@/api/queries/sessions";
import { queryClient } from "@/api/query-client";
import type { components } from "@/api/schema";
import type { Session } from "@/api/session-state";
import type { Family, FamilyMember } from "./family";

const MAX_ANCESTORS = 50;
const MAX_MEMBERS = 200;
const MAX_PARALLEL = 8;
/** Changes within this time lead to one refresh. */
const BATCH_MS = 250;
const familyKey = (sessionId: string) => ["session-family", sessionId] as const;

export function familyQuery(session: Session) {
  return queryOptions({
    queryKey: familyKey(session.id),
    queryFn: async ({ signal }): Promise<Family> => {
      let root = session;
      let hasHiddenRoot = false;
      for (let count = 0; count < MAX_ANCESTORS && root.forked_from != null; count += 1) {
        const parent = await readParent(root.forked_from.session_id, signal);
        if (parent === null) {
          hasHiddenRoot = true;
          break;
        }
        root = parent;
      }
      const members: FamilyMember[] = [{ session: root, parentId: null }];
      let level = [root];
      while (level.length > 0 && members.length < MAX_MEMBERS) {
        const next: Session[] = [];
        for (let at = 0; at < level.length && members.length < MAX_MEMBERS; at += MAX_PARALLEL) {
          const parents = level.slice(at, at + MAX_PARALLEL);
          const found = await Promise.all(parents.map((parent) => readForks(parent.id, signal)));
          parents.forEach((parent, index) => {
            for (const fork of found[index] ?? []) {
              members.push({ session: fork, parentId: parent.id });
              next.push(fork);
            }
          });
        }
        level = next;
      }
      return { members, hasHiddenRoot, isCut: level.length > 0 };
    },
  });
}

async function readParent(id: string, signal: AbortSignal): Promise<Session | null> {
  try {
    return required(await api.GET("/v1/sessions/{session_id}", { params: { path: { session_id: id } }, signal }));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) {
      return null;
    }
    throw error;
  }
}

async function readForks(id: string, signal: AbortSignal): Promise<Session[]> {
  const { data } = await request<Listing<Session>>("GET", "/v1/sessions", {
    query: { forked_from: id, limit: 100, include_archived: true },
    signal,
  });
  return data;
}

/** The turns of a session, for the numbers of fork points. */
export function turnStartsQuery(sessionId: string) {
  return queryOptions({
    queryKey: [...keys.session(sessionId), "turn-starts"],
    queryFn: async ({ signal }) => {
      const { data } = required(
        await api.GET("/v1/sessions/{session_id}/turns", {
          params: { path: { session_id: sessionId }, query: { limit: 100 } },
          signal,
        }),
      );
      return data.map((turn) => ({ first_seq: turn.first_seq }));
    },
  });
}

/** How many lines the session has changed in all. */
export function changedLinesQuery(sessionId: string) {
  return queryOptions({
    queryKey: [...keys.session(sessionId), "changed-lines"],
    queryFn: async ({ signal }) => {
      const { trees } = await request<{ trees: components["schemas"]["TreeDiffAnswer"][] }>(
        "GET",
        `/v1/sessions/${encodeURIComponent(sessionId)}/diff`,
        { signal },
      );
      return {
        added: trees.reduce((sum, tree) => sum + tree.added, 0),
        deleted: trees.reduce((sum, tree) => sum + tree.deleted, 0),
        files: trees.reduce((sum, tree) => sum + tree.files.length, 0),
      };
    },
    retry: false,
  });
}

/** Reads the family again when one of it changes, or a session is created that may be a fork. */
export function useFamilyChanges(sessionId: string, family: Family | undefined): void {
  const queries = useQueryClient();
  const concerns = useEffectEvent(
    (changed: string) => family?.members.some((member) => member.session.id === changed) ?? false,
  );
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = onFeedChange((change) => {
      const id = change.session_id;
      if (id != null && (change.type === "session.created" || concerns(id))) {
        timer ??= setTimeout(() => {
          timer = undefined;
          void queries.invalidateQueries({ queryKey: familyKey(sessionId) });
        }, BATCH_MS);
      }
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [queries, sessionId]);
}

/** Another page of the family opens with what is known already. */
export function rememberSession(session: Session): void {
  queryClient.setQueryData(sessionQuery(session.id).queryKey, (known) => known ?? session);
}
