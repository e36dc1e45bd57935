// Creates a team, or adds and removes members of one.
import { zodResolver } from "@hookform/resolvers/zod";
import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { useId } from "react";
import { Controller, useForm, useWatch } from "react-hook-form";

import { createTeam, everyMemberQuery, type Member, type Team, updateTeam } from "@/api/queries/people";
import { Button } from "@/design/components/button";
import { Combobox } from "@/design/components/combobox";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";
import { SkeletonRows } from "@/design/components/skeleton";
import { SafeText } from "@/design/text/text";
import { z } from "@/design/zod";

import { FormDialog } from "../people/form-dialog";
import { type FieldTable, useFormSave } from "../people/use-form-save";
import { isChanged, teamChange } from "./model";

const LONGEST_NAME = 200;

const teamSchema = z.object({
  name: z
    .string()
    .trim()
    .min(1, "Give the team a name.")
    .max(LONGEST_NAME, `Shorten it to ${LONGEST_NAME} characters.`),
  memberIds: z.array(z.string()),
});
type TeamValues = z.infer<typeof teamSchema>;

const FIELDS: FieldTable<TeamValues> = [["name", "name"]];

interface Props {
  /** Null: a new one. */
  team: Team | null;
  onSaved: (team: Team) => void;
  onClose: () => void;
}

export function TeamDialog({ team, onSaved, onClose }: Props) {
  const formId = useId();
  const members = useQuery(everyMemberQuery);
  const form = useForm<TeamValues>({
    resolver: zodResolver(teamSchema),
    defaultValues: { name: team?.name ?? "", memberIds: team?.member_ids ?? [] },
  });
  const memberIds = useWatch({ control: form.control, name: "memberIds" });
  const change = teamChange(team?.member_ids ?? [], memberIds);
  const { submit, failure } = useFormSave(form, FIELDS, async (values) => {
    onSaved(
      await (team === null
        ? createTeam(values.name.trim(), values.memberIds)
        : updateTeam(team.id, change.add, change.remove)),
    );
  });
  return (
    <FormDialog
      title={team === null ? "New team" : `Members of “${team.name}”`}
      formId={formId}
      button={team === null ? "Create team" : "Save"}
      isReady={members.data !== undefined && (team === null || isChanged(change))}
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
        {team === null && (
          <Field
            label="Name"
            error={form.formState.errors.name?.message}
            hint="A team has no roles: it only decides who sees a session. Its name cannot be changed later."
          >
            {(field) => <Input {...field} {...form.register("name")} autoComplete="off" />}
          </Field>
        )}
        {members.isPending && <SkeletonRows count={3} />}
        {members.error !== null && members.data === undefined && (
          <ErrorPanel
            title="The members could not be loaded"
            error={members.error}
            onRetry={() => void members.refetch()}
          />
        )}
        {members.data !== undefined && (
          <Controller
            control={form.control}
            name="memberIds"
            render={({ field: { value, onChange } }) => (
              <ChosenMembers members={members.data} chosen={value} onChange={onChange} />
            )}
          />
        )}
        {team !== null && change.remove.length > 0 && (
          <p role="status" className="text-sm text-waiting">
            Who is removed no longer sees the sessions of this team within 5 seconds, and open streams of them end.
          </p>
        )}
        {failure !== null && (
          <ErrorPanel title={team === null ? "The team was not created" : "The team was not changed"} error={failure} />
        )}
      </form>
    </FormDialog>
  );
}

interface ChosenProps {
  members: readonly Member[];
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
}

function ChosenMembers({ members, chosen, onChange }: ChosenProps) {
  const addable = members.filter((member) => member.disabled_at === null && !chosen.includes(member.id));
  const nameOf = (id: string): string => members.find((member) => member.id === id)?.name ?? id;
  return (
    <div className="flex flex-col gap-2">
      <Field label="Add a member">
        {(field) => (
          <Combobox
            {...field}
            // A new one for each choice, so that it is empty again.
            key={chosen.length}
            options={addable.map((member) => ({ value: member.id, label: member.name }))}
            value={null}
            placeholder="Choose a member"
            emptyText={addable.length === 0 ? "All members are in the team." : "Nothing matches."}
            onChange={(id) => {
              if (id !== null) {
                onChange([...chosen, id]);
              }
            }}
          />
        )}
      </Field>
      {chosen.length === 0 ? (
        <p className="text-muted">The team has no members.</p>
      ) : (
        <ul aria-label="Members of the team" className="max-h-72 overflow-y-auto border-t">
          {chosen.map((id) => (
            <li key={id} className="flex min-h-9 items-center gap-2 border-b max-md:min-h-11">
              <SafeText className="min-w-0 flex-1 truncate">{nameOf(id)}</SafeText>
              <Button
                variant="quiet"
                size="icon"
                aria-label={`Remove ${nameOf(id)}`}
                className="max-md:size-11"
                onClick={() => {
                  onChange(chosen.filter((one) => one !== id));
                }}
              >
                <X />
              </Button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
