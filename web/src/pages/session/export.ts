// Downloads what the API offers of a session: its events, its transcript, and its commits.
import { apiFetch, readError, request } from "@/api/client";
import type { Listing } from "@/api/contract";
import type { Session } from "@/api/session-state";
import { showToast } from "@/design/components/toast";
import { saveFile } from "@/design/save-file";

const PAGE = 1000;

async function attempt(failure: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    showToast({ title: failure, description: error instanceof Error ? error.message : String(error), tone: "failed" });
  }
}

/** One event per line, oldest first. */
export function exportEvents(session: Session): Promise<void> {
  return attempt("The events were not exported", async () => {
    const lines: string[] = [];
    let page: string | null = null;
    do {
      const found: Listing<unknown> = await request("GET", `/v1/sessions/${encodeURIComponent(session.id)}/events`, {
        query: { limit: PAGE, order: "asc", extensions: true, page },
      });
      lines.push(...found.data.map((event) => `${JSON.stringify(event)}\n`));
      page = found.next_page;
    } while (page !== null);
    saveFile(`${session.id}-events.jsonl`, new Blob(lines, { type: "application/x-ndjson" }));
  });
}

/** The conversation in the form of its harness, which can continue it elsewhere. */
export function exportTranscript(session: Session): Promise<void> {
  return attempt("The transcript was not exported", () =>
    download(`/v1/sessions/${encodeURIComponent(session.id)}/transcript`, `${session.id}-transcript.jsonl`),
  );
}

export function exportBundle(session: Session): Promise<void> {
  const project = session.project_ids[0];
  const query = project === undefined ? "" : `?project_id=${encodeURIComponent(project)}`;
  return attempt("The commits were not exported", () =>
    download(`/v1/sessions/${encodeURIComponent(session.id)}/bundle${query}`, `${session.id}.bundle`),
  );
}

async function download(path: string, name: string): Promise<void> {
  const response = await apiFetch(new Request(new URL(path, location.origin)));
  if (!response.ok) {
    throw await readError(response);
  }
  saveFile(name, await response.blob());
}
