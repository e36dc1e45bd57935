// Chooses roles: those that permit something, and the organisation's own.
import { Controller, useFormContext } from "react-hook-form";

import { Checkbox } from "@/design/components/checkbox";
import { Field } from "@/design/components/field";
import { Input } from "@/design/components/input";

import { describeRole, ROLE_NAMES, type RoleValues } from "./roles";

export function RolesField() {
  const { control, register, formState } = useFormContext<RoleValues>();
  const { errors } = formState;
  return (
    <>
      <Controller
        control={control}
        name="roles"
        render={({ field }) => (
          <fieldset ref={field.ref} tabIndex={-1} className="outline-none">
            <legend className="mb-1 text-sm font-medium">Roles</legend>
            <div className="grid grid-cols-2 gap-x-4 gap-y-1 max-md:grid-cols-1">
              {ROLE_NAMES.map((role) => (
                <Checkbox
                  key={role}
                  aria-label={role}
                  checked={field.value.includes(role)}
                  onCheckedChange={(isOn) => {
                    field.onChange(isOn ? [...field.value, role] : field.value.filter((one) => one !== role));
                  }}
                >
                  <span className="min-w-0 max-md:py-1.5">
                    {role} <span className="text-sm text-muted">· {describeRole(role)}</span>
                  </span>
                </Checkbox>
              ))}
            </div>
            {errors.roles !== undefined && (
              <p role="alert" className="mt-1 text-sm text-failed">
                {errors.roles.message}
              </p>
            )}
          </fieldset>
        )}
      />
      <Field
        label="Roles of your own"
        error={errors.ownRoles?.message}
        hint="Optional, such as release_manager. They permit nothing by themselves; approval settings can require them."
      >
        {(control_) => <Input {...control_} {...register("ownRoles")} spellCheck={false} autoComplete="off" />}
      </Field>
    </>
  );
}
