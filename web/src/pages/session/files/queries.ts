// Reads the files of a session: what its agent left, and what people attached.
import { queryOptions } from "@tanstack/react-query";

import { request } from "@/api/client";
import type { Listing } from "@/api/contract";
import type { components } from "@/api/schema";
import type { Session } from "@/api/session-state";

export type StoredFile = components["schemas"]["File"];
type FileListing = components["schemas"]["FileListing"];

export interface SessionFile {
  id: string;
  name: string;
  size: number;
  mediaType: string;
  createdAt: string;
  isOutput: boolean;
  /** Where the agent finds it; null: only in a message. */
  place: string | null;
}

export interface Attachments {
  files: SessionFile[];
  /** Files that were deleted or have expired. */
  missing: number;
}

const PAGE_SIZE = 1000;
/** Ids in one request. */
const CHUNK = 50;
const MESSAGES = 100;

export const filesKeys = {
  all: (sessionId: string) => ["session-files", sessionId],
  outputs: (sessionId: string) => ["session-files", sessionId, "outputs"],
} as const;

export function outputsQuery(sessionId: string) {
  return queryOptions({
    queryKey: filesKeys.outputs(sessionId),
    queryFn: async ({ signal }) => {
      const found = await request<FileListing>("GET", "/v1/files", {
        query: { scope_id: sessionId, limit: PAGE_SIZE },
        signal,
      });
      return { files: found.data.map((file) => toFile(file, true, null)), omitted: found.omitted ?? [] };
    },
    staleTime: 0,
  });
}

interface MessageEvent {
  content?: { source?: { type?: string; file_id?: string } }[];
}

/** Files that were put into the tree, and files in messages. */
export function attachmentsQuery(session: Session) {
  const places = new Map(session.resources.map((resource) => [resource.file_id, resource.mount_path]));
  return queryOptions({
    queryKey: [...filesKeys.all(session.id), "attachments", [...places]],
    queryFn: async ({ signal }): Promise<Attachments> => {
      const path = `/v1/sessions/${encodeURIComponent(session.id)}/events`;
      const messages = await request<Listing<MessageEvent>>("GET", path, {
        query: { "types[]": "user.message", order: "desc", limit: MESSAGES },
        signal,
      });
      const ids = new Set(places.keys());
      for (const { content } of messages.data) {
        for (const { source } of Array.isArray(content) ? content : []) {
          if (source?.type === "file" && source.file_id !== undefined) {
            ids.add(source.file_id);
          }
        }
      }
      const files = await readFiles([...ids], signal);
      return {
        files: files.map((file) => toFile(file, false, places.get(file.id) ?? null)),
        missing: ids.size - files.length,
      };
    },
    staleTime: 0,
  });
}

async function readFiles(ids: readonly string[], signal: AbortSignal): Promise<StoredFile[]> {
  const found: StoredFile[] = [];
  for (let start = 0; start < ids.length; start += CHUNK) {
    const chunk = ids.slice(start, start + CHUNK);
    const listing = await request<FileListing>("GET", "/v1/files", {
      query: { "ids[]": chunk },
      signal,
    });
    found.push(...listing.data);
  }
  return found;
}

function toFile(file: StoredFile, isOutput: boolean, place: string | null): SessionFile {
  return {
    id: file.id,
    name: file.filename,
    size: file.size_bytes,
    mediaType: file.mime_type,
    createdAt: file.created_at,
    isOutput,
    place,
  };
}

export function contentUrl(id: string): string {
  return `/v1/files/${encodeURIComponent(id)}/content`;
}
