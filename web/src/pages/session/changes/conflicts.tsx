// Files that a merge could not combine, and what to do about them.
import { useState } from "react";

import { request } from "@/api/client";
import type { Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { CopyButton } from "@/design/components/copy";
import { ErrorPanel } from "@/design/components/error-panel";
import { showToast } from "@/design/components/toast";
import { SafeText } from "@/design/text/text";

export interface FileConflict {
  path: string;
  /** What each side did. */
  reason: string;
  lines: readonly number[];
  lastCommit: string | null;
}

const SHOWN_LINES = 5;

/** Reads the details of a refused merge. Empty: it was refused for another reason. */
export function readConflicts(details: Readonly<Record<string, unknown>>): FileConflict[] {
  const found = details["conflicts"];
  return (Array.isArray(found) ? (found as Record<string, unknown>[]) : []).map((one) => ({
    path: String(one["path"]),
    reason: typeof one["reason"] === "string" ? one["reason"] : "",
    lines: Array.isArray(one["lines"]) ? (one["lines"] as number[]) : [],
    lastCommit: typeof one["last_commit"] === "string" ? one["last_commit"] : null,
  }));
}

interface ConflictsProps {
  session: Session;
  branch: string;
  conflicts: readonly FileConflict[];
  canOperate: boolean;
  onSent: () => void;
}

export function Conflicts({ session, branch, conflicts, canOperate, onSent }: ConflictsProps) {
  const [error, setError] = useState<unknown>(null);
  const command = `footplate export ${session.id} --branch resolve-${session.id.slice(-6)}`;

  async function askAgent(): Promise<void> {
    const files = conflicts.map((one) => `- ${one.path}: ${one.reason}`).join("\n");
    const text = `Your changes conflict with the branch ${branch}:\n${files}\nChange your work so that it can be merged into this branch.`;
    try {
      await request("POST", `/v1/sessions/${encodeURIComponent(session.id)}/events`, {
        body: { events: [{ type: "user.message", content: [{ type: "text", text }] }] },
      });
      showToast({ title: "Sent. The agent works on the conflicts." });
      onSent();
    } catch (failure) {
      setError(failure);
    }
  }

  return (
    <section role="alert" className="flex flex-col gap-2 rounded-md border border-failed/40 p-3">
      <h3 className="font-medium text-failed">
        {conflicts.length === 1 ? "1 file has" : `${conflicts.length} files have`} conflicting changes. Nothing was
        changed.
      </h3>
      <ul className="max-h-60 divide-y overflow-y-auto">
        {conflicts.map((one) => (
          <li key={one.path} className="py-1.5">
            <SafeText className="font-mono text-sm break-all">{one.path}</SafeText>
            <p className="text-sm text-muted">
              <SafeText>{one.reason}</SafeText>
              {one.lines.length > 0 &&
                `, line ${one.lines.slice(0, SHOWN_LINES).join(", ")}${one.lines.length > SHOWN_LINES ? " and more" : ""}`}
              {one.lastCommit !== null && (
                <>
                  {" "}
                  · last changed in the branch by <SafeText className="font-mono text-xs">{one.lastCommit}</SafeText>
                </>
              )}
            </p>
          </li>
        ))}
      </ul>
      <p className="text-sm text-muted">
        Ask the agent, or take the work as a branch into your checkout, and let git mark the lines:
      </p>
      <div className="flex items-center gap-2 rounded-md bg-code py-1 pr-1 pl-3">
        <code className="min-w-0 flex-1 overflow-x-auto font-mono text-sm whitespace-pre">{command}</code>
        <CopyButton text={command} label="the command" />
      </div>
      <Button className="self-start max-md:h-11" disabled={!canOperate} onClick={() => void askAgent()}>
        Ask the agent to resolve them
      </Button>
      {error !== null && <ErrorPanel error={error} title="The message was not sent" />}
    </section>
  );
}
