// Adds a member, and changes the roles of one.
import { zodResolver } from "@hookform/resolvers/zod";
import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { Controller, FormProvider, useForm } from "react-hook-form";

import { signInMethodsQuery } from "@/api/queries/me";
import { createMember, type Member, updateMember } from "@/api/queries/people";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";
import { Select } from "@/design/components/select";
import { SafeText } from "@/design/text/text";
import { z } from "@/design/zod";

import { FormDialog } from "../people/form-dialog";
import { findRoleProblem, fromRoleValues, roleFields, type RoleValues, toRoleValues } from "../people/roles";
import { RolesField } from "../people/roles-field";
import { type FieldTable, useFormSave } from "../people/use-form-save";

const LONGEST_NAME = 200;
const KIND_OPTIONS = [
  { value: "person", label: "Person" },
  { value: "service", label: "Service account, such as a CI job" },
] as const;

const rolesSchema = z.object(roleFields).superRefine((values, context) => {
  const problem = findRoleProblem(values);
  if (problem !== null) {
    context.addIssue({ code: "custom", path: [problem.path], message: problem.message });
  }
});
const memberSchema = rolesSchema.safeExtend({
  name: z
    .string()
    .trim()
    .min(1, "Write the name of the person or the service account.")
    .max(LONGEST_NAME, `Shorten it to ${LONGEST_NAME} characters.`),
  kind: z.enum(["person", "service"]),
});
type MemberValues = z.infer<typeof memberSchema>;

const MEMBER_FIELDS: FieldTable<MemberValues> = [
  ["name", "name"],
  ["roles", "roles"],
];
const ROLE_FIELDS: FieldTable<RoleValues> = [["roles", "roles"]];

interface FormProps {
  onSaved: (member: Member) => void;
  onClose: () => void;
}

export function AddMemberDialog({ onSaved, onClose }: FormProps) {
  const formId = useId();
  const { data: methods } = useQuery(signInMethodsQuery);
  const provider = methods?.oidc?.name;
  const form = useForm<MemberValues>({
    resolver: zodResolver(memberSchema),
    defaultValues: { name: "", kind: "person", roles: ["member"], ownRoles: "" },
  });
  const { errors } = form.formState;
  const { submit, failure } = useFormSave(form, MEMBER_FIELDS, async (values) => {
    onSaved(await createMember({ name: values.name.trim(), kind: values.kind, roles: fromRoleValues(values) }));
  });
  return (
    <FormDialog title="Add a member" formId={formId} button="Add member" onClose={onClose}>
      <FormProvider {...form}>
        <form
          id={formId}
          className="flex flex-col gap-4"
          onSubmit={(event) => {
            event.preventDefault();
            submit();
          }}
        >
          {provider !== undefined && (
            <p className="text-muted">
              People who sign in through <SafeText>{provider}</SafeText> become members by themselves.
            </p>
          )}
          <div className="grid grid-cols-2 gap-4 max-md:grid-cols-1">
            <Field label="Name" error={errors.name?.message}>
              {(field) => <Input {...field} {...form.register("name")} autoComplete="off" />}
            </Field>
            <Field label="Kind">
              {({ id }) => (
                <Controller
                  control={form.control}
                  name="kind"
                  render={({ field: { value, onChange } }) => (
                    <Select id={id} className="w-full" options={KIND_OPTIONS} value={value} onChange={onChange} />
                  )}
                />
              )}
            </Field>
          </div>
          <RolesField />
          {failure !== null && <ErrorPanel title="The member was not added" error={failure} />}
        </form>
      </FormProvider>
    </FormDialog>
  );
}

export function ChangeRolesDialog({ member, onSaved, onClose }: FormProps & { member: Member }) {
  const formId = useId();
  const form = useForm<RoleValues>({
    resolver: zodResolver(rolesSchema),
    defaultValues: toRoleValues(member.roles),
  });
  const { submit, failure } = useFormSave(form, ROLE_FIELDS, async (values) => {
    onSaved(await updateMember(member.id, { roles: fromRoleValues(values) }));
  });
  return (
    <FormDialog title={`Roles of “${member.name}”`} formId={formId} button="Change roles" onClose={onClose}>
      <FormProvider {...form}>
        <form
          id={formId}
          className="flex flex-col gap-4"
          onSubmit={(event) => {
            event.preventDefault();
            submit();
          }}
        >
          <p className="text-muted">
            {member.sign_in_methods.includes("oidc")
              ? "This member signs in through the identity provider. At the next sign-in, the roles of its groups replace these."
              : "If you take a role, all API keys of the member lose it within 5 seconds."}
          </p>
          <RolesField />
          {failure !== null && <ErrorPanel title="The roles were not changed" error={failure} />}
        </form>
      </FormProvider>
    </FormDialog>
  );
}
