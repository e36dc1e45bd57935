// The recordings of the shells that people had on the terminal, to download.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";

import { useActions } from "@/actions/use-actions";
import { api, required } from "@/api/client";
import { keys } from "@/api/keys";
import { buttonStyle } from "@/design/components/button";
import { Time } from "@/design/components/time";
import { formatBytes } from "@/design/format";

function recordingsQuery(sessionId: string) {
  return queryOptions({
    queryKey: [...keys.session(sessionId), "recordings"],
    queryFn: async ({ signal }) => {
      const { data } = required(
        await api.GET("/v1/sessions/{session_id}/terminal/recordings", {
          params: { path: { session_id: sessionId } },
          signal,
        }),
      );
      return data.toReversed();
    },
  });
}

export function Recordings({ sessionId }: { sessionId: string }) {
  const { data: recordings = [] } = useQuery(recordingsQuery(sessionId));
  const [newest] = recordings;
  useActions(
    newest === undefined
      ? {}
      : { "session.download-recording": () => document.getElementById(`recording-${newest.id}`)?.click() },
  );
  if (recordings.length === 0) {
    return null;
  }
  return (
    <details className="shrink-0 border-t px-4 py-2">
      <summary className="cursor-pointer text-muted hover:text-text">
        {recordings.length === 1 ? "1 recording" : `${recordings.length} recordings`} of closed shells
      </summary>
      <ul aria-label="Recordings" className="flex max-h-40 flex-col overflow-y-auto pt-2">
        {recordings.map((recording) => (
          <li key={recording.id} className="flex min-h-9 items-center gap-4">
            <Time value={recording.created_at} className="w-32" />
            <span className="text-muted">{formatBytes(recording.size_bytes)}</span>
            <a
              id={`recording-${recording.id}`}
              href={`/v1/sessions/${encodeURIComponent(sessionId)}/terminal/recordings/${encodeURIComponent(recording.id)}`}
              download={`${recording.id}.cast`}
              className={buttonStyle({ variant: "quiet", size: "sm" })}
            >
              <Download aria-hidden /> Download
            </a>
          </li>
        ))}
      </ul>
      <p className="pt-1 text-sm text-muted">Play one with asciinema play. What was typed is not recorded.</p>
    </details>
  );
}
