// The editor of the organisation's policy, beside the changes that saving it would make.
import { zodResolver } from "@hookform/resolvers/zod";
import { useQueryClient } from "@tanstack/react-query";
import { useBlocker } from "@tanstack/react-router";
import { useState } from "react";
import { FormProvider, useForm, useWatch } from "react-hook-form";

import { displayShortcut } from "@/actions/shortcuts";
import { useAction } from "@/actions/use-actions";
import { ApiError } from "@/api/errors";
import { keys } from "@/api/keys";
import { type Policy, policyQuery, updatePolicy } from "@/api/queries/policy";
import { Button } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { showToast } from "@/design/components/toast";
import { DiscardDialog } from "@/design/components/discard-dialog";

import { ChangeList } from "./change-list";
import { countChanges, describeDefault, findChanges } from "./changes";
import { ConflictPanel } from "./conflict-panel";
import { EditorFields } from "./fields";
import { type EditorValues, editorSchema, findProblem, rebase, toPolicy, valuesOf } from "./model";
import { PastCalls } from "./past-calls";
import { SaveDialog } from "./save-dialog";

interface Props {
  /** The policy as it was when the editor opened. */
  stored: Policy;
  canChange: boolean;
}

export function Editor({ stored, canChange }: Props) {
  const queries = useQueryClient();
  const [base, setBase] = useState(stored);
  const [isChecking, setChecking] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  /** What another member saved meanwhile. */
  const [theirs, setTheirs] = useState<Policy | null>(null);
  const form = useForm<EditorValues>({ resolver: zodResolver(editorSchema), defaultValues: valuesOf(stored) });
  const values = useWatch({ control: form.control }) as EditorValues;
  const edited = toPolicy(values);
  const changes = findChanges(base, edited);
  const count = countChanges(changes);
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) =>
      count > 0 && (current.pathname !== next.pathname || !isEditor(next.search as Record<string, unknown>)),
    enableBeforeUnload: () => count > 0,
    withResolver: true,
  });

  function adopt(policy: Policy, next: EditorValues): void {
    setBase(policy);
    setTheirs(null);
    setFailure(null);
    form.reset(next);
    queries.setQueryData(policyQuery.queryKey, policy);
  }
  async function save(): Promise<void> {
    setFailure(null);
    try {
      const saved = await updatePolicy({ ...edited, expected_updated_at: base.updated_at });
      adopt(saved, valuesOf(saved));
      void queries.invalidateQueries({ queryKey: keys.audit });
      showToast({ title: "Rules saved", description: "They apply to every call within a second." });
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) {
        try {
          setTheirs(await queries.query({ ...policyQuery, staleTime: 0 }));
          return;
        } catch (other) {
          setFailure(other);
          return;
        }
      }
      const problem = findProblem(error, values);
      if (problem === null) {
        setFailure(error);
      } else {
        form.setError(problem.field, { type: "server", message: problem.message }, { shouldFocus: true });
      }
    } finally {
      setChecking(false);
    }
  }
  function check(): void {
    void form.handleSubmit(() => {
      setChecking(true);
    })();
  }
  const canSave = canChange && count > 0 && theirs === null;
  useAction("policy.save", check, { isEnabled: canSave && !isChecking });
  return (
    <FormProvider {...form}>
      <form
        aria-label="Rules of the organisation"
        className="grid grid-cols-[minmax(0,1fr)_minmax(0,1fr)] items-start gap-8 p-6 max-xl:grid-cols-1 max-md:p-4"
        onSubmit={(event) => {
          event.preventDefault();
          check();
        }}
      >
        <div className="flex flex-col gap-4">
          <EditorFields />
          {failure !== null && <ErrorPanel title="The rules were not saved" error={failure} />}
          <div className="flex flex-wrap items-center justify-end gap-2">
            {!canChange && (
              <p className="flex-1 text-sm text-muted">
                You can try rules here. To save them, your role would have to be admin or policy_admin.
              </p>
            )}
            {count > 0 && (
              <Button
                className="max-md:h-11 max-md:flex-1"
                onClick={() => {
                  form.reset(valuesOf(base));
                  setFailure(null);
                }}
              >
                Undo the changes
              </Button>
            )}
            {canChange && (
              <Button
                type="submit"
                variant="primary"
                className="max-md:h-11 max-md:flex-1"
                disabled={!canSave}
                shortcut={displayShortcut("mod+enter").join(" ")}
              >
                Check and save …
              </Button>
            )}
          </div>
        </div>
        <div className="sticky top-6 flex flex-col gap-4 max-xl:static">
          {theirs !== null && (
            <ConflictPanel
              base={base}
              theirs={theirs}
              onRebase={() => {
                adopt(theirs, valuesOf(rebase(base, edited, theirs)));
              }}
              onDiscard={() => {
                adopt(theirs, valuesOf(theirs));
              }}
            />
          )}
          <section aria-label="Changes" className="flex flex-col gap-2">
            <h2 className="font-semibold">Changes</h2>
            <ChangeList changes={changes} consequence={describeDefault(base, edited)} />
          </section>
          <PastCalls permissions={edited.permissions} />
        </div>
      </form>
      {isChecking && (
        <SaveDialog
          changes={changes}
          consequence={describeDefault(base, edited)}
          onSave={save}
          onClose={() => {
            setChecking(false);
          }}
        />
      )}
      {blocker.status === "blocked" && (
        <DiscardDialog noun="organisation’s policy" onKeep={blocker.reset} onDiscard={blocker.proceed} />
      )}
    </FormProvider>
  );
}

function isEditor(search: Record<string, unknown>): boolean {
  return search["section"] === "edit";
}
