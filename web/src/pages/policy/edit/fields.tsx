// The fields of the editor: rules by outcome, approval settings, and hooks.
import { Controller, useFormContext } from "react-hook-form";

import { Checkbox } from "@/design/components/checkbox";
import { Field } from "@/design/components/field";
import { Input, Textarea } from "@/design/components/input";
import { Select } from "@/design/components/select";

import type { EditorValues } from "./model";

const RULES = [
  { name: "deny", label: "Deny", hint: "Wins over everything else.", example: "Bash(rm *)" },
  { name: "ask", label: "Ask", hint: "A person decides each call.", example: "Bash(git push *)" },
  { name: "allow", label: "Allow", hint: "Unless a rule of any layer asks or denies.", example: "Bash(npm run *)" },
] as const;

const EXPIRY_OUTCOMES = [
  { value: "deny", label: "Deny the call" },
  { value: "allow", label: "Allow the call" },
] as const;

export function EditorFields() {
  const { register, control, formState } = useFormContext<EditorValues>();
  const { errors } = formState;
  return (
    <>
      {RULES.map(({ name, label, hint, example }) => (
        <Field key={name} label={label} error={errors[name]?.message} hint={`${hint} One rule per line.`}>
          {(field) => (
            <Textarea
              {...field}
              {...register(name)}
              spellCheck={false}
              wrap="off"
              placeholder={example}
              className="field-sizing-content max-h-72 min-h-16 overflow-auto font-mono text-sm"
            />
          )}
        </Field>
      ))}
      <fieldset className="grid grid-cols-2 gap-4 border-t pt-4 max-md:grid-cols-1">
        <legend className="sr-only">Approvals</legend>
        <Field
          label="Time limit of approvals, in seconds"
          error={errors.expires?.message}
          hint="Empty: calls wait without a limit."
        >
          {(field) => <Input {...field} {...register("expires")} inputMode="numeric" />}
        </Field>
        <Field label="After the time limit" error={errors.outcome?.message}>
          {({ id }) => (
            <Controller
              control={control}
              name="outcome"
              render={({ field }) => (
                <Select
                  id={id}
                  className="w-full"
                  options={EXPIRY_OUTCOMES}
                  value={field.value}
                  onChange={field.onChange}
                />
              )}
            />
          )}
        </Field>
        <Field
          label="Role that decides"
          error={errors.role?.message}
          hint="Empty: everyone with the permission approve."
        >
          {(field) => <Input {...field} {...register("role")} placeholder="approver" />}
        </Field>
        <Controller
          control={control}
          name="twoPeople"
          render={({ field }) => (
            <Checkbox className="shrink-0" checked={field.value} onCheckedChange={field.onChange}>
              Who asked for the work cannot decide its calls
            </Checkbox>
          )}
        />
      </fieldset>
      <Field label="Hooks, as JSON" error={errors.hooks?.message} hint="They run in this order, after the rules.">
        {(field) => (
          <Textarea
            {...field}
            {...register("hooks")}
            spellCheck={false}
            wrap="off"
            className="field-sizing-content max-h-72 min-h-9 overflow-auto font-mono text-sm"
          />
        )}
      </Field>
    </>
  );
}
