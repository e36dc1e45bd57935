// Creates an API key. What the key may do is limited by the roles of its member, and the form says so.
import { zodResolver } from "@hookform/resolvers/zod";
import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { Controller, FormProvider, useForm, useFormContext, useWatch } from "react-hook-form";

import type { Principal } from "@/api/contract";
import { projectsQuery } from "@/api/queries/new-session";
import { allMembersQuery, createApiKey, type Member, type NewApiKey } from "@/api/queries/people";
import { Checkbox } from "@/design/components/checkbox";
import { Combobox } from "@/design/components/combobox";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";
import { Select } from "@/design/components/select";
import { SkeletonRows } from "@/design/components/skeleton";
import { SafeText } from "@/design/text/text";

import { FormDialog } from "../people/form-dialog";
import { describeRestriction, fromRoleValues } from "../people/roles";
import { RolesField } from "../people/roles-field";
import { useFormSave } from "../people/use-form-save";
import { EXPIRIES, KEY_FIELDS, keySchema, type KeyValues, newKeyValues, toKeyFields } from "./model";

interface Props {
  me: Principal;
  onCreated: (key: NewApiKey) => void;
  onClose: () => void;
}

export function KeyFormDialog({ me, onCreated, onClose }: Props) {
  const members = useQuery(allMembersQuery);
  const formId = useId();
  return (
    <FormDialog
      title="New API key"
      formId={formId}
      button="Create key"
      isReady={members.data !== undefined}
      onClose={onClose}
    >
      {members.data !== undefined && <KeyForm id={formId} me={me} members={members.data} onCreated={onCreated} />}
      {members.isPending && <SkeletonRows count={4} />}
      {members.error !== null && members.data === undefined && (
        <ErrorPanel
          title="The members could not be loaded"
          error={members.error}
          onRetry={() => void members.refetch()}
        />
      )}
    </FormDialog>
  );
}

interface FormProps {
  id: string;
  me: Principal;
  members: readonly Member[];
  onCreated: (key: NewApiKey) => void;
}

function KeyForm({ id, me, members, onCreated }: FormProps) {
  const isMember = members.some((member) => member.id === me.id);
  const form = useForm<KeyValues>({
    resolver: zodResolver(keySchema),
    defaultValues: newKeyValues(isMember ? me.id : null),
  });
  const { register, control, formState } = form;
  const { errors } = formState;
  const expires = useWatch({ control, name: "expires" });
  const { submit, failure } = useFormSave(form, KEY_FIELDS, async (values) => {
    onCreated(await createApiKey(toKeyFields(values, Date.now())));
  });
  return (
    <FormProvider {...form}>
      <form
        id={id}
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <Field label="Name" error={errors.name?.message} hint="The device, job or program that uses it.">
          {(field) => <Input {...field} {...register("name")} placeholder="laptop" autoComplete="off" />}
        </Field>
        <MemberField members={members} me={me} />
        <RolesField />
        <RestrictionHint members={members} />
        <div className="grid grid-cols-2 gap-4 max-md:grid-cols-1">
          <Field label="Expires">
            {(field) => (
              <Controller
                control={control}
                name="expires"
                render={({ field: { value, onChange } }) => (
                  <Select id={field.id} className="w-full" options={EXPIRIES} value={value} onChange={onChange} />
                )}
              />
            )}
          </Field>
          {expires === "date" && (
            <Field label="Last day" error={errors.date?.message}>
              {(field) => <Input {...field} {...register("date")} type="date" />}
            </Field>
          )}
        </div>
        <ProjectsField />
        {failure !== null && <ErrorPanel title="The API key was not created" error={failure} />}
      </form>
    </FormProvider>
  );
}

function MemberField({ members, me }: { members: readonly Member[]; me: Principal }) {
  const { control, formState } = useFormContext<KeyValues>();
  const options = [
    { value: "", label: "A new service account, named like the key" },
    ...members.map((member) => ({
      value: member.id,
      label: member.id === me.id ? `${member.name} (you)` : member.name,
    })),
  ];
  return (
    <Controller
      control={control}
      name="memberId"
      render={({ field: { value, onChange } }) => (
        <Field
          label="Member"
          error={formState.errors.memberId?.message}
          hint="What the key does is done in the name of this member."
        >
          {(field) => (
            <Combobox
              {...field}
              options={options}
              value={value ?? ""}
              onChange={(next) => {
                onChange(next === null || next === "" ? null : next);
              }}
            />
          )}
        </Field>
      )}
    />
  );
}

/** What the key permits, if its member may do less than its roles permit. */
function RestrictionHint({ members }: { members: readonly Member[] }) {
  const { control } = useFormContext<KeyValues>();
  const [memberId, roles, ownRoles] = useWatch({ control, name: ["memberId", "roles", "ownRoles"] });
  const member = members.find((one) => one.id === memberId);
  const restriction = member && describeRestriction(fromRoleValues({ roles, ownRoles }), member.roles);
  return member === undefined || restriction === undefined || restriction === null ? null : (
    <p role="status" className="-mt-2 text-sm text-waiting">
      <SafeText>{member.name}</SafeText> has the roles {member.roles.join(", ")}. With this key, you can: {restriction}.
    </p>
  );
}

function ProjectsField() {
  const { control, formState } = useFormContext<KeyValues>();
  const isRestricted = useWatch({ control, name: "isRestricted" });
  const { data } = useQuery(projectsQuery);
  const projects = data?.data ?? [];
  return (
    <div className="flex flex-col gap-2">
      <Controller
        control={control}
        name="isRestricted"
        render={({ field: { value, onChange } }) => (
          <Checkbox checked={value} onCheckedChange={onChange} disabled={projects.length === 0}>
            <span>
              Only for some projects{" "}
              <span className="text-sm text-muted">
                {projects.length === 0
                  ? "· there are no projects"
                  : "· it then sees and starts only sessions of these projects"}
              </span>
            </span>
          </Checkbox>
        )}
      />
      {isRestricted && (
        <Controller
          control={control}
          name="projectIds"
          render={({ field: { ref, value, onChange } }) => (
            <fieldset ref={ref} tabIndex={-1} className="ml-6 outline-none">
              <legend className="sr-only">Projects</legend>
              <div className="grid max-h-40 grid-cols-2 gap-x-4 gap-y-1 overflow-y-auto p-0.5 max-md:grid-cols-1">
                {projects.map((project) => (
                  <Checkbox
                    key={project.id}
                    checked={value.includes(project.id)}
                    onCheckedChange={(isOn) => {
                      onChange(isOn ? [...value, project.id] : value.filter((one) => one !== project.id));
                    }}
                  >
                    <SafeText className="min-w-0 truncate max-md:py-1.5">{project.name}</SafeText>
                  </Checkbox>
                ))}
              </div>
              {formState.errors.projectIds !== undefined && (
                <p role="alert" className="mt-1 text-sm text-failed">
                  {formState.errors.projectIds.message}
                </p>
              )}
            </fieldset>
          )}
        />
      )}
    </div>
  );
}
