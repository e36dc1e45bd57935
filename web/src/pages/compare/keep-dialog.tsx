// Keeps one attempt: merges it, and archives the others. Says first what that means.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { api, request } from "@/api/client";
import type { Listing } from "@/api/contract";
import { ApiError } from "@/api/errors";
import { keys } from "@/api/keys";
import { type Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { Checkbox } from "@/design/components/checkbox";
import { Dialog, DialogContent } from "@/design/components/dialog";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";
import { showToast } from "@/design/components/toast";
import { SafeText } from "@/design/text/text";
import { branchOf, CheckedOutHelp, isCheckedOut } from "../session/changes/checked-out-help";
import { Conflicts, readConflicts } from "../session/changes/conflicts";
import { type Attempt, titleOf } from "./use-attempt";

interface KeepDialogProps {
  kept: Attempt;
  other: Attempt;
  onClose: () => void;
}

export function KeepDialog({ kept, other, onClose }: KeepDialogProps) {
  const queries = useQueryClient();
  const { session } = kept;
  const projectId = kept.tree?.project_id ?? null;
  const canMerge = projectId !== null && kept.listed.length > 0;
  const [isMerging, setMerging] = useState(canMerge);
  const [branch, setBranch] = useState(projectId === null ? "" : (session?.bases[projectId]?.branch ?? ""));
  const [isArchiving, setArchiving] = useState(true);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [isMerged, setMerged] = useState(false);
  const groupId = session?.group_id ?? null;
  const group = useQuery({
    queryKey: [...keys.sessions, "group", groupId],
    queryFn: ({ signal }) =>
      request<Listing<Session>>("GET", "/v1/sessions", { query: { group_id: groupId, limit: 100 }, signal }),
    enabled: groupId !== null,
  });
  const others = otherAttempts(kept.id, other.session, group.data?.data ?? []);
  const running = others.filter((one) => ["running", "queued"].includes(one.state));
  const conflicts = error instanceof ApiError ? readConflicts(error.details) : [];

  async function keep(): Promise<void> {
    setBusy(true);
    setError(null);
    try {
      if (isMerging && !isMerged) {
        await api.POST("/v1/sessions/{session_id}/merge", {
          params: { path: { session_id: kept.id } },
          body: { into: branch.trim(), project_id: projectId, wait_seconds: 30, message: null },
        });
        setMerged(true);
      }
      if (isArchiving) {
        for (const one of others) {
          await request("POST", `/v1/sessions/${encodeURIComponent(one.id)}/archive`);
        }
      }
      showToast({ title: describeDone(isMerging ? branch.trim() : null, isArchiving ? others.length : 0) });
      onClose();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
      void queries.invalidateQueries({ queryKey: keys.sessions });
      void queries.invalidateQueries({ queryKey: keys.inbox });
      for (const one of others) {
        void queries.invalidateQueries({ queryKey: keys.session(one.id) });
      }
    }
  }

  return (
    <Dialog
      open
      onOpenChange={(isOpen) => {
        if (!isOpen) {
          onClose();
        }
      }}
    >
      <DialogContent
        title="Keep this attempt"
        description={<SafeText>{titleOf(kept)}</SafeText>}
        footer={
          <>
            <Button className="max-md:h-11 max-md:flex-1" onClick={onClose}>
              Cancel
            </Button>
            <Button
              variant="primary"
              className="max-md:h-11 max-md:flex-1"
              disabled={isBusy || (!isMerging && !isArchiving) || (isMerging && branch.trim() === "")}
              onClick={() => void keep()}
            >
              {isBusy ? "Working …" : describeButton(isMerging && !isMerged, isArchiving)}
            </Button>
          </>
        }
      >
        <div className="flex flex-col gap-4">
          <Checkbox checked={isMerging} disabled={!canMerge || isMerged} onCheckedChange={setMerging}>
            Merge its changes into a branch
          </Checkbox>
          {!canMerge && (
            <p className="-mt-2 pl-6 text-sm text-muted">
              {session?.project_ids.length === 0 ? "It works on no project." : "It has changed nothing."}
            </p>
          )}
          {isMerging && (
            <div className="-mt-1 pl-6">
              <Field label="Branch" hint="A branch that does not exist is created.">
                {(control) => (
                  <Input
                    {...control}
                    className="font-mono"
                    spellCheck={false}
                    disabled={isMerged}
                    value={branch}
                    onValueChange={setBranch}
                  />
                )}
              </Field>
            </div>
          )}
          {isMerged && <p className="-mt-2 pl-6 text-sm text-success">Merged.</p>}
          <div className="flex flex-col gap-1">
            <Checkbox checked={isArchiving} onCheckedChange={setArchiving}>
              {others.length === 1 ? "Archive the other attempt" : `Archive the ${others.length} other attempts`}
            </Checkbox>
            <ul className="pl-6 text-sm text-muted">
              {others.map((one) => (
                <li key={one.id} className="truncate">
                  <SafeText>{one.title ?? "Untitled session"}</SafeText>
                </li>
              ))}
            </ul>
            <p className="pl-6 text-sm text-muted">
              An archived session can be read, but gets no more messages, and lists omit it. Its changes are not merged.
            </p>
            {isArchiving && running.length > 0 && (
              <p className="pl-6 text-sm text-waiting">
                {running.length === 1 ? "One of them still works" : `${running.length} of them still work`}. Stop it
                first, or the server may refuse to archive it.
              </p>
            )}
          </div>
          {session !== undefined && conflicts.length > 0 ? (
            <Conflicts session={session} branch={branch} conflicts={conflicts} canOperate onSent={onClose} />
          ) : (
            error !== null && (
              <ErrorPanel
                error={error}
                title={isMerging && !isMerged ? "The merge was refused, nothing was archived" : "Not all was archived"}
                help={
                  isCheckedOut(error) ? (
                    <CheckedOutHelp
                      branch={branchOf(kept.id)}
                      onUse={() => {
                        setBranch(branchOf(kept.id));
                        setError(null);
                      }}
                    />
                  ) : undefined
                }
              />
            )
          )}
        </div>
      </DialogContent>
    </Dialog>
  );
}

/** The one that is compared, and the others of the group. */
function otherAttempts(keptId: string, other: Session | undefined, group: readonly Session[]): Session[] {
  const found = new Map<string, Session>();
  for (const one of [...(other === undefined ? [] : [other]), ...group]) {
    if (one.id !== keptId && one.archived_at === null) {
      found.set(one.id, one);
    }
  }
  return [...found.values()];
}

function describeButton(isMerging: boolean, isArchiving: boolean): string {
  if (isMerging) {
    return isArchiving ? "Merge and archive" : "Merge";
  }
  return "Archive";
}

function describeDone(branch: string | null, archived: number): string {
  const parts = [
    ...(branch === null ? [] : [`Merged into ${branch}`]),
    ...(archived === 0 ? [] : [`${archived} archived`]),
  ];
  return parts.join(", ");
}
