// Merges the changes into a branch, or pushes them as a new one: what would happen, what did, and why not.
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { ApiError } from "@/api/errors";
import { api, required } from "@/api/client";
import { keys } from "@/api/keys";
import type { components } from "@/api/schema";
import { type Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { Dialog, DialogContent } from "@/design/components/dialog";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input, Textarea } from "@/design/components/input";
import { SafeText } from "@/design/text/text";
import { branchOf, CheckedOutHelp, isCheckedOut } from "./checked-out-help";
import { Conflicts, readConflicts } from "./conflicts";
import { Delivered } from "./delivered";
import { MergePlan } from "./merge-plan";
import type { Changes } from "./use-changes";

export type Delivery = components["schemas"]["SessionLeft"];
type Way = "merge" | "push";

interface MergeDialogProps {
  session: Session;
  changes: Changes;
  canOperate: boolean;
  onClose: () => void;
}

export function MergeDialog({ session, changes, canOperate, onClose }: MergeDialogProps) {
  const queries = useQueryClient();
  const projectId = changes.tree?.project_id ?? null;
  const base = projectId === null ? undefined : session.bases[projectId];
  const [way, setWay] = useState<Way>("merge");
  const newBranch = branchOf(session.id);
  const [branches, setBranches] = useState({ merge: base?.branch ?? "", push: newBranch });
  const [message, setMessage] = useState(session.title ?? "");
  const [isBusy, setBusy] = useState(false);
  const [result, setResult] = useState<Delivery | null>(null);
  const [error, setError] = useState<unknown>(null);
  const reason = whyNot(session, changes, canOperate);
  const branch = branches[way];
  const conflicts = error instanceof ApiError ? readConflicts(error.details) : [];

  async function deliver(): Promise<void> {
    if (isBusy || reason !== null || branch.trim() === "") {
      return;
    }
    setBusy(true);
    setError(null);
    const common = { project_id: projectId, wait_seconds: 30, message: message.trim() === "" ? null : message.trim() };
    const path = { session_id: session.id };
    try {
      const delivered =
        way === "merge"
          ? await api.POST("/v1/sessions/{session_id}/merge", {
              params: { path },
              body: { ...common, into: branch.trim() },
            })
          : await api.POST("/v1/sessions/{session_id}/push", {
              params: { path },
              body: { ...common, branch: branch.trim() },
            });
      setResult(required(delivered));
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
      void queries.invalidateQueries({ queryKey: keys.inbox });
    }
  }

  if (result !== null) {
    return <Delivered result={result} projectName={changes.tree?.name ?? ""} onClose={onClose} />;
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
        title={way === "merge" ? "Merge the changes" : "Push the changes"}
        description={<SafeText>{changes.tree?.name ?? ""}</SafeText>}
        className="w-[36rem]"
        footer={
          <>
            <Button onClick={onClose} className="max-md:h-11 max-md:flex-1">
              Cancel
            </Button>
            <Button
              variant="primary"
              className="max-md:h-11 max-md:flex-1"
              disabled={reason !== null || isBusy || branch.trim() === ""}
              onClick={() => void deliver()}
            >
              {isBusy ? "Working …" : way === "merge" ? "Merge" : "Push"}
            </Button>
          </>
        }
      >
        <div className="flex flex-col gap-4">
          {reason !== null && <p className="rounded-md bg-waiting-soft px-3 py-2 text-waiting">{reason}</p>}
          {projectId !== null && (
            <>
              <fieldset className="flex flex-wrap gap-x-6 gap-y-2">
                <legend className="sr-only">Where the changes go</legend>
                <WayChoice way="merge" current={way} onChange={setWay} title="Merge into a branch" />
                <WayChoice way="push" current={way} onChange={setWay} title="Push as a new branch" />
              </fieldset>
              <Field
                label="Branch"
                hint={
                  way === "merge"
                    ? "A branch that does not exist is created from the commit that the session started from."
                    : "The branch must not exist yet."
                }
              >
                {(control) => (
                  <Input
                    {...control}
                    className="font-mono"
                    value={branch}
                    spellCheck={false}
                    onValueChange={(text) => {
                      setBranches({ ...branches, [way]: text });
                    }}
                  />
                )}
              </Field>
              <MergePlan changes={changes} base={base} />
              {(changes.tree?.states === null || hasUncommitted(changes)) && (
                <Field label="Message of the last commit">
                  {(control) => (
                    <Textarea
                      {...control}
                      rows={2}
                      className="min-h-14"
                      value={message}
                      onChange={(event) => {
                        setMessage(event.target.value);
                      }}
                    />
                  )}
                </Field>
              )}
            </>
          )}
          {conflicts.length > 0 ? (
            <Conflicts
              session={session}
              branch={branch}
              conflicts={conflicts}
              canOperate={canOperate}
              onSent={onClose}
            />
          ) : (
            error !== null && (
              <ErrorPanel
                error={error}
                title={way === "merge" ? "The merge was refused" : "The push was refused"}
                help={
                  isCheckedOut(error) ? (
                    <CheckedOutHelp
                      branch={newBranch}
                      onUse={() => {
                        setBranches({ ...branches, merge: newBranch });
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

function WayChoice(props: { way: Way; current: Way; onChange: (way: Way) => void; title: string }) {
  return (
    <label className="flex min-h-8 items-center gap-2 max-md:min-h-11">
      <input
        type="radio"
        name="way"
        className="size-4 accent-accent"
        checked={props.way === props.current}
        onChange={() => {
          props.onChange(props.way);
        }}
      />
      {props.title}
    </label>
  );
}

export function hasUncommitted({ tree }: Changes): boolean {
  const states = tree?.states;
  return states != null && states.staged.count + states.unstaged.count + states.untracked.count > 0;
}

function whyNot(session: Session, changes: Changes, canOperate: boolean): string | null {
  if (changes.tree?.project_id == null) {
    return "This session works in a directory of its own, not in a project. Download the changes as a patch instead.";
  }
  if (!canOperate) {
    return "You can see this session. Your role does not permit merging.";
  }
  if (session.state === "running") {
    return "A turn is running. Wait until it has ended, or stop it.";
  }
  return changes.tree.files.length === 0 && changes.range.kind === "all" ? "There are no changes to deliver." : null;
}
