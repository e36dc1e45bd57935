// The sessions of a parallel step: what each does, and what happens to their files.
import { Plus, X } from "lucide-react";

import { Button } from "@/design/components/button";
import { Field } from "@/design/components/field";
import { Input, Textarea } from "@/design/components/input";
import { Select } from "@/design/components/select";
import type { DraftMember, StepDraft } from "./draft";

interface Props {
  draft: StepDraft;
  /** The sessions of a queued step cannot be changed. */
  isNew: boolean;
  onChange: (change: Partial<StepDraft>) => void;
}

export function MembersFields({ draft, isNew, onChange }: Props) {
  if (!isNew) {
    return (
      <p className="text-muted">
        Its {draft.members.length} sessions cannot be changed. Remove the step and add another one instead.
      </p>
    );
  }
  function change(index: number, update: Partial<DraftMember>): void {
    onChange({ members: draft.members.map((member, at) => (at === index ? { ...member, ...update } : member)) });
  }
  return (
    <>
      {draft.members.map((member, index) => (
        <div key={index} className="flex items-start gap-2">
          <Select
            label={`Kind of session ${index + 1}`}
            options={[
              { value: "prompt", label: "Prompt" },
              { value: "shell", label: "Shell" },
            ]}
            value={member.kind}
            onChange={(kind) => {
              change(index, { kind: kind ?? "prompt" });
            }}
          />
          <Textarea
            aria-label={`Session ${index + 1}`}
            rows={2}
            className="min-h-8"
            value={member.text}
            onChange={(event) => {
              change(index, { text: event.target.value });
            }}
          />
          <Button
            variant="quiet"
            size="icon"
            aria-label={`Remove session ${index + 1}`}
            disabled={draft.members.length === 1}
            onClick={() => {
              onChange({ members: draft.members.filter((_, at) => at !== index) });
            }}
          >
            <X />
          </Button>
        </div>
      ))}
      <div>
        <Button
          size="sm"
          onClick={() => {
            onChange({ members: [...draft.members, { kind: "prompt", text: draft.members.at(-1)?.text ?? "" }] });
          }}
        >
          <Plus aria-hidden /> Another session
        </Button>
      </div>
      <Field label="Their files">
        {({ id }) => (
          <Select
            id={id}
            options={[
              { value: "none", label: "Leave this session's files as they are" },
              { value: "merge", label: "Merge the changes of all" },
              { value: "best", label: "Take over the first whose check succeeds" },
            ]}
            value={draft.branches}
            onChange={(branches) => {
              onChange({ branches: branches ?? "none" });
            }}
            className="w-full"
          />
        )}
      </Field>
      {draft.branches === "best" && (
        <Field label="Check" hint="A command that runs at the end of each session, such as make test.">
          {(control) => (
            <Input
              {...control}
              className="font-mono text-sm"
              value={draft.check}
              onValueChange={(check) => {
                onChange({ check });
              }}
            />
          )}
        </Field>
      )}
    </>
  );
}
