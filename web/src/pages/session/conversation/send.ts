// Sends messages and uploads their attachments. A message that is sent again after a lost response arrives once.
import { apiFetch, readError, request } from "@/api/client";
import type { components } from "@/api/schema";

export type WhenBusy = "queue" | "steer" | "interrupt";

export interface UploadedFile {
  id: string;
  name: string;
  mediaType: string;
}

const IMAGE_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export async function uploadFile(file: File): Promise<UploadedFile> {
  const body = new FormData();
  body.append("file", file, file.name);
  const response = await apiFetch(new Request(new URL("/v1/files", location.origin), { method: "POST", body }));
  if (!response.ok) {
    throw await readError(response);
  }
  const created = (await response.json()) as components["schemas"]["File"];
  return { id: created.id, name: created.filename, mediaType: created.mime_type };
}

export async function sendMessage(
  sessionId: string,
  { text, files, whenBusy, key }: { text: string; files: readonly UploadedFile[]; whenBusy: WhenBusy; key: string },
): Promise<void> {
  const content = [
    ...(text === "" ? [] : [{ type: "text", text }]),
    ...files.map((file) => ({
      type: IMAGE_TYPES.has(file.mediaType) ? "image" : "file",
      source: { type: "file", file_id: file.id },
      ...(IMAGE_TYPES.has(file.mediaType) ? {} : { title: file.name }),
    })),
  ];
  const url = new URL(`/v1/sessions/${encodeURIComponent(sessionId)}/events`, location.origin);
  const response = await apiFetch(
    new Request(url, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": key },
      body: JSON.stringify({ events: [{ type: "user.message", content, when_busy: whenBusy }] }),
    }),
  );
  if (!response.ok) {
    throw await readError(response);
  }
}

export async function interrupt(sessionId: string): Promise<void> {
  await request("POST", `/v1/sessions/${encodeURIComponent(sessionId)}/events`, {
    body: { events: [{ type: "user.interrupt" }] },
  });
}

/** `crypto.randomUUID` exists only over HTTPS. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
