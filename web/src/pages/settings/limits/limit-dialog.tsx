// Sets a limit of the organisation, of each member or of one member.
import { zodResolver } from "@hookform/resolvers/zod";
import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { Controller, useForm, useWatch } from "react-hook-form";

import { allMembersQuery, type Limit, setLimit } from "@/api/queries/people";
import { Combobox } from "@/design/components/combobox";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";
import { Select } from "@/design/components/select";

import { FormDialog } from "../people/form-dialog";
import { useFormSave } from "../people/use-form-save";
import {
  formatAmount,
  LIMIT_FIELDS,
  LIMIT_NAMES,
  limitSchema,
  LIMITS,
  type LimitValues,
  limitValues,
  toLimitFields,
  UNITS,
} from "./model";

const NAME_OPTIONS = LIMIT_NAMES.map((value) => ({ value, label: LIMITS[value].title }));
const SCOPE_OPTIONS = [
  { value: "organisation", label: "The organisation as a whole" },
  { value: "each_member", label: "Each member without a limit of its own" },
  { value: "member", label: "One member" },
] as const;
const UNIT_OPTIONS = (Object.keys(UNITS) as (keyof typeof UNITS)[]).map((value) => ({ value, label: value }));

interface Props {
  /** The selected limit, with which the form starts. */
  limit: Limit | null;
  limits: readonly Limit[];
  onSaved: (limit: Limit) => void;
  onClose: () => void;
}

export function LimitDialog({ limit, limits, onSaved, onClose }: Props) {
  const formId = useId();
  const members = useQuery(allMembersQuery);
  const form = useForm<LimitValues>({ resolver: zodResolver(limitSchema), defaultValues: limitValues(limit) });
  const { control, formState } = form;
  const { errors } = formState;
  const [name, scope] = useWatch({ control, name: ["name", "scope"] });
  const { submit, failure } = useFormSave(form, LIMIT_FIELDS, async (values) => {
    onSaved(await setLimit(toLimitFields(values)));
  });
  const operator = limits.find(
    (one) => one.name === name && one.scope === (scope === "organisation" ? scope : "each_member"),
  );
  const highest = operator?.operator_value ?? null;
  return (
    <FormDialog title="Set a limit" formId={formId} button="Set limit" onClose={onClose}>
      <form
        id={formId}
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <Field label="Limit" hint={`${LIMITS[name].counts}. Beyond it, ${LIMITS[name].beyond}.`}>
          {({ id }) => (
            <Controller
              control={control}
              name="name"
              render={({ field: { value, onChange } }) => (
                <Select id={id} className="w-full" options={NAME_OPTIONS} value={value} onChange={onChange} />
              )}
            />
          )}
        </Field>
        <Field label="For" error={errors.scope?.message}>
          {({ id }) => (
            <Controller
              control={control}
              name="scope"
              render={({ field: { value, onChange } }) => (
                <Select id={id} className="w-full" options={SCOPE_OPTIONS} value={value} onChange={onChange} />
              )}
            />
          )}
        </Field>
        {scope === "member" && (
          <Controller
            control={control}
            name="memberId"
            render={({ field: { value, onChange } }) => (
              <Field label="Member" error={errors.memberId?.message}>
                {(field) => (
                  <Combobox
                    {...field}
                    options={(members.data ?? []).map((member) => ({ value: member.id, label: member.name }))}
                    value={value}
                    placeholder="Choose a member"
                    onChange={onChange}
                  />
                )}
              </Field>
            )}
          />
        )}
        <div className="flex items-start gap-2">
          <div className="flex-1">
            <Field
              label="At most"
              error={errors.amount?.message}
              hint={
                highest === null
                  ? undefined
                  : `The operator of the server permits at most ${formatAmount(name, highest)}.`
              }
            >
              {(field) => <Input {...field} {...form.register("amount")} inputMode="decimal" autoComplete="off" />}
            </Field>
          </div>
          {name === "stored_bytes" && (
            <Controller
              control={control}
              name="unit"
              render={({ field: { value, onChange } }) => (
                <Select label="Unit" className="mt-6 w-24" options={UNIT_OPTIONS} value={value} onChange={onChange} />
              )}
            />
          )}
        </div>
        {failure !== null && <ErrorPanel title="The limit was not set" error={failure} />}
      </form>
    </FormDialog>
  );
}
