// Disables a member, after saying what happens, and hands over its work; also later, when it is disabled already.
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";

import { useAction } from "@/actions/use-actions";
import { allMembersQuery, type Member, updateMember } from "@/api/queries/people";
import { Combobox } from "@/design/components/combobox";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { SafeText } from "@/design/text/text";

import { FormDialog } from "../people/form-dialog";
import { describeWork, DISABLING } from "./describe";

interface Props {
  member: Member;
  onSaved: (member: Member) => void;
  onClose: () => void;
}

export function DisableDialog({ member, onSaved, onClose }: Props) {
  const formId = useId();
  const isDisabled = member.disabled_at !== null;
  const members = useQuery(allMembersQuery);
  const others = members.data?.filter((one) => one.id !== member.id) ?? [];
  const [successorId, setSuccessorId] = useState<string | null>(null);
  const [isSaving, setSaving] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const successor = others.find((one) => one.id === successorId);
  const isReady = !isSaving && (!isDisabled || successor !== undefined);
  async function save(): Promise<void> {
    setSaving(true);
    setFailure(null);
    try {
      onSaved(
        await updateMember(member.id, {
          disabled: true,
          ...(successor === undefined ? {} : { successor_id: successor.id }),
        }),
      );
    } catch (error) {
      setFailure(error);
      setSaving(false);
    }
  }
  function submit(): void {
    if (isReady) {
      void save();
    }
  }
  useAction("settings.work-save", submit);
  return (
    <FormDialog
      title={isDisabled ? `Hand over the work of “${member.name}”` : `Disable “${member.name}”?`}
      formId={formId}
      button={isDisabled ? "Hand over" : "Disable"}
      isDangerous={!isDisabled}
      isReady={isReady}
      onClose={onClose}
    >
      <form
        id={formId}
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <ul aria-label="What happens" className="flex list-disc flex-col gap-1 pl-5">
          {(isDisabled ? [] : DISABLING).map((text) => (
            <li key={text}>{text}</li>
          ))}
          <li>
            <SafeText>{describeWork(successor?.name ?? null)}</SafeText>
          </li>
        </ul>
        <Field
          label="Hand over the work to"
          hint={
            isDisabled ? undefined : "Optional. What is handed over stays there, also if you enable the member again."
          }
        >
          {(field) => (
            <Combobox
              {...field}
              options={others.map((one) => ({ value: one.id, label: one.name }))}
              value={successorId}
              placeholder="Choose a member"
              onChange={setSuccessorId}
            />
          )}
        </Field>
        {members.error !== null && members.data === undefined && (
          <ErrorPanel title="The members could not be loaded" error={members.error} />
        )}
        {failure !== null && (
          <ErrorPanel
            title={isDisabled ? "The work was not handed over" : "The member was not disabled"}
            error={failure}
          />
        )}
      </form>
    </FormDialog>
  );
}
