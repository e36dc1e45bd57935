// Creates an environment, or changes one. Only what was changed is sent.
import { zodResolver } from "@hookform/resolvers/zod";
import { Controller, useForm, useWatch } from "react-hook-form";

import { type Environment, saveEnvironment } from "@/api/queries/environments";
import type { Backend } from "@/api/queries/new-session";
import { Checkbox } from "@/design/components/checkbox";
import { Field } from "@/design/components/field";
import { Input, Textarea } from "@/design/components/input";
import { Select } from "@/design/components/select";

import { EntryForm } from "../work/entry-form";
import {
  environmentSchema,
  type EnvironmentValues,
  findField,
  NEW_ENVIRONMENT,
  PACKAGE_MANAGERS,
  toFields,
  valuesOf,
} from "./model";

const NETWORKS = [
  { value: "unrestricted", label: "As the server allows" },
  { value: "limited", label: "Only hosts that I list" },
] as const;
const CONTAINER_BACKEND = "docker";

interface Props {
  /** Null: a new one. */
  environment: Environment | null;
  backends: readonly Backend[];
  onSaved: (environment: Environment) => void;
  onCancel: () => void;
}

export function EnvironmentForm({ environment, backends, onSaved, onCancel }: Props) {
  const form = useForm<EnvironmentValues>({
    resolver: zodResolver(environmentSchema),
    defaultValues: environment === null ? NEW_ENVIRONMENT : valuesOf(environment),
  });
  const { control, register, formState } = form;
  const { errors } = formState;
  const [network, backend] = useWatch({ control, name: ["network", "backend"] });
  const standard = backends.find((one) => one.is_default)?.name;
  const names = [...new Set([...backends.map((one) => one.name), ...(backend === "" ? [] : [backend])])];
  const hasContainer = (backend === "" ? standard : backend) === CONTAINER_BACKEND;
  const containerHint = hasContainer ? undefined : "Only with the backend docker.";
  return (
    <EntryForm
      form={form}
      noun="environment"
      isNew={environment === null}
      send={(values) => saveEnvironment(environment?.id ?? null, toFields(values, environment))}
      onSaved={onSaved}
      findField={findField}
      onCancel={onCancel}
      note={environment === null ? undefined : "Sessions that exist keep the configuration that they have."}
    >
      <fieldset className="flex flex-col gap-4">
        <legend className="sr-only">Environment</legend>
        <Field label="Name" error={errors.name?.message}>
          {(field) => <Input {...field} {...register("name")} placeholder="python" />}
        </Field>
        <Field label="Description" error={errors.description?.message} hint="Optional: what it is for.">
          {(field) => <Textarea {...field} {...register("description")} className="min-h-9" rows={1} />}
        </Field>
        <div className="grid grid-cols-2 gap-4 max-md:grid-cols-1">
          <Field label="Backend" error={errors.backend?.message}>
            {({ id }) => (
              <Controller
                control={control}
                name="backend"
                render={({ field }) => (
                  <Select
                    id={id}
                    className="w-full"
                    options={names.map((name) => ({ value: name, label: name }))}
                    clearLabel={standard === undefined ? "The server's default" : `The server's default, ${standard}`}
                    value={field.value === "" ? null : field.value}
                    onChange={(next) => {
                      field.onChange(next ?? "");
                    }}
                  />
                )}
              />
            )}
          </Field>
          <Field label="Image" error={errors.image?.message} hint={containerHint ?? "Empty: the server's image."}>
            {(field) => <Input {...field} {...register("image")} spellCheck={false} placeholder="python:3.12" />}
          </Field>
        </div>
      </fieldset>
      <fieldset className="flex flex-col gap-4">
        <legend className="mb-3 font-semibold">Network</legend>
        <Field label="Commands reach" error={errors.network?.message}>
          {({ id }) => (
            <Controller
              control={control}
              name="network"
              render={({ field }) => (
                <Select id={id} className="w-full" options={NETWORKS} value={field.value} onChange={field.onChange} />
              )}
            />
          )}
        </Field>
        {network === "limited" && (
          <>
            <Field
              label="Allowed hosts"
              error={errors.hosts?.message}
              hint="One per line. Empty: no network. The server's operator must allow each of them too."
            >
              {(field) => (
                <Textarea
                  {...field}
                  {...register("hosts")}
                  rows={3}
                  spellCheck={false}
                  className="font-mono text-sm"
                  placeholder="pypi.org"
                />
              )}
            </Field>
            <Controller
              control={control}
              name="allowsMcpServers"
              render={({ field }) => (
                <Checkbox checked={field.value} onCheckedChange={field.onChange}>
                  The worker may also call the agent's MCP servers
                </Checkbox>
              )}
            />
          </>
        )}
      </fieldset>
      <fieldset className="flex flex-col gap-4">
        <legend className="mb-3 font-semibold">Preparation of the image</legend>
        {containerHint !== undefined && <p className="text-sm text-muted">{containerHint}</p>}
        <div className="grid grid-cols-2 gap-4 max-md:grid-cols-1">
          {PACKAGE_MANAGERS.map((name) => (
            <Field key={name} label={`Packages of ${name}`} error={errors.packages?.[name]?.message}>
              {(field) => <Input {...field} {...register(`packages.${name}`)} spellCheck={false} />}
            </Field>
          ))}
        </div>
        <Field
          label="Setup script"
          error={errors.setup?.message}
          hint="Runs once as root after the packages are installed. The result is cached."
        >
          {(field) => (
            <Textarea {...field} {...register("setup")} rows={4} spellCheck={false} className="font-mono text-sm" />
          )}
        </Field>
      </fieldset>
    </EntryForm>
  );
}
