// Adds a step, or edits one that waits. What somebody else changes meanwhile is said, and nothing typed is lost.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { ApiError } from "@/api/errors";
import type { Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { Checkbox } from "@/design/components/checkbox";
import { Dialog, DialogContent } from "@/design/components/dialog";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input, Textarea } from "@/design/components/input";
import { Select } from "@/design/components/select";
import { draftOf, EMPTY_DRAFT, findProblem, isSameDraft, type StepDraft, toEdit, toInput } from "./draft";
import { KINDS } from "./marks";
import { MembersFields } from "./members-fields";
import { isPending, stepLabel } from "./model";
import { OptionFields } from "./option-fields";
import { stepsQuery } from "./queries";
import type { StepCommands, StepDialog as DialogState } from "./use-step-commands";

const ADDABLE = ["prompt", "shell", "external", "parallel", "merge", "push"] as const;
const TEXT_LABELS: Partial<Record<StepDraft["kind"], string>> = {
  prompt: "Prompt",
  shell: "Command",
  external: "Instructions",
};

interface Props {
  session: Session;
  state: DialogState;
  commands: StepCommands;
}

export function StepDialog({ session, state, commands }: Props) {
  const step = state.mode === "edit" ? state.step : null;
  const { data: steps } = useQuery(stepsQuery(session.id));
  const current = steps?.find((one) => one.id === step?.id);
  const [base, setBase] = useState<StepDraft>(() => (step === null ? EMPTY_DRAFT : draftOf(step)));
  const [draft, setDraft] = useState(base);
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const problem = findProblem(draft);
  const field = error instanceof ApiError ? error.field : null;
  const hasGone = step !== null && current !== undefined && !isPending(current);
  const theirs = step !== null && current !== undefined && !hasGone ? draftOf(current) : base;
  const hasChanged = !isSameDraft(theirs, base);

  function update(change: Partial<StepDraft>): void {
    setDraft((before) => ({ ...before, ...change }));
  }
  const errorOf = (...names: string[]): string | undefined =>
    error instanceof Error && field !== null && names.some((name) => field.split(".").at(-1) === name)
      ? error.message
      : undefined;

  async function save(): Promise<void> {
    if (problem !== null || isSending || hasGone) {
      return;
    }
    setSending(true);
    try {
      await (step === null
        ? commands.changes.add([toInput(draft)], state.mode === "add" ? (state.before?.id ?? null) : null)
        : commands.changes.edit(step, toEdit(draft)));
      commands.closeDialog();
    } catch (failure) {
      setError(failure);
    } finally {
      setSending(false);
    }
  }

  const text = TEXT_LABELS[draft.kind];
  return (
    <Dialog
      open
      onOpenChange={(isOpen) => {
        if (!isOpen) {
          commands.closeDialog();
        }
      }}
    >
      <DialogContent
        title={step === null ? "Add a step" : "Edit the step"}
        description={
          step === null
            ? "It runs after the steps that wait already."
            : "The change counts if the step has not started."
        }
        className="w-[40rem]"
        footer={
          <>
            <Button onClick={commands.closeDialog}>Cancel</Button>
            <Button
              variant="primary"
              shortcut="Ctrl+⏎"
              disabled={problem !== null || isSending || hasGone}
              title={problem ?? undefined}
              onClick={() => void save()}
            >
              {step === null ? "Add" : "Save"}
            </Button>
          </>
        }
      >
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- a shortcut of all its fields */}
        <form
          className="flex flex-col gap-3"
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              void save();
            }
          }}
        >
          {hasGone && (
            <p role="alert" className="rounded-md bg-waiting-soft px-3 py-2 text-waiting">
              “{stepLabel(current)}” does not wait any more, so it cannot be edited. Copy your text if you need it.
            </p>
          )}
          {hasChanged && (
            <div role="alert" className="flex items-center gap-2 rounded-md bg-waiting-soft px-3 py-2 text-waiting">
              <span className="flex-1">This step was changed in another window. Saving replaces that change.</span>
              <Button
                size="sm"
                onClick={() => {
                  setDraft(theirs);
                  setBase(theirs);
                }}
              >
                Show that version
              </Button>
            </div>
          )}
          {step === null && (
            <Field label="What it does">
              {({ id }) => (
                <Select
                  id={id}
                  options={ADDABLE.map((value) => ({ value, label: KINDS[value].title }))}
                  value={draft.kind}
                  onChange={(kind) => {
                    update({ kind: kind ?? "prompt" });
                  }}
                  className="w-full"
                />
              )}
            </Field>
          )}
          {text !== undefined && (
            <Field label={text} error={errorOf("content", "command", "instructions")}>
              {(control) => (
                <Textarea
                  {...control}
                  // The dialog is opened to write this.
                  // oxlint-disable-next-line jsx-a11y/no-autofocus
                  autoFocus
                  rows={4}
                  spellCheck={draft.kind !== "shell"}
                  className={draft.kind === "shell" ? "font-mono text-sm" : ""}
                  value={draft.text}
                  onChange={(event) => {
                    update({ text: event.target.value });
                  }}
                />
              )}
            </Field>
          )}
          {draft.kind === "shell" && (
            <Checkbox
              checked={draft.onTerminal}
              onCheckedChange={(onTerminal) => {
                update({ onTerminal });
              }}
            >
              Run it on the terminal, where people see it and can type
            </Checkbox>
          )}
          {draft.kind === "parallel" && <MembersFields draft={draft} isNew={step === null} onChange={update} />}
          {(draft.kind === "merge" || draft.kind === "push") && (
            <>
              <Field
                label="Branch"
                hint={
                  draft.kind === "merge"
                    ? "Empty: the branch that the session started from."
                    : "Empty: footplate/ and the ID of the session."
                }
                error={errorOf("into", "branch")}
              >
                {(control) => (
                  <Input
                    {...control}
                    value={draft.branch}
                    onValueChange={(branch) => {
                      update({ branch });
                    }}
                  />
                )}
              </Field>
              <Field label="Commit message" hint="Empty: the title of the session." error={errorOf("message")}>
                {(control) => (
                  <Input
                    {...control}
                    value={draft.message}
                    onValueChange={(message) => {
                      update({ message });
                    }}
                  />
                )}
              </Field>
            </>
          )}
          <OptionFields
            draft={draft}
            isOpen={step !== null && (base.name !== "" || base.condition !== "")}
            errorOf={errorOf}
            onChange={update}
          />
          {error !== null && <ErrorPanel title="The step was not saved" error={error} />}
        </form>
      </DialogContent>
    </Dialog>
  );
}
