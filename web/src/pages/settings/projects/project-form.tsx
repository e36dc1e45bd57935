// Creates a project, or changes one. Its location stays.
import { zodResolver } from "@hookform/resolvers/zod";
import { Controller, useForm, useWatch } from "react-hook-form";

import { type Project, saveProject } from "@/api/queries/projects";
import { Field } from "@/design/components/field";
import { Input, Textarea } from "@/design/components/input";
import { Select } from "@/design/components/select";
import { SafeText } from "@/design/text/text";

import { EntryForm } from "../work/entry-form";
import {
  findField,
  hasRules,
  NEW_PROJECT,
  projectSchema,
  type ProjectValues,
  toFields,
  TRUST,
  valuesOf,
} from "./model";

const KINDS = [
  { value: "url", label: "An address" },
  { value: "path", label: "A directory on the server" },
] as const;
const TRUST_OPTIONS = (Object.keys(TRUST) as Project["trust"][]).map((value) => ({ value, label: TRUST[value].title }));
const CACHES = [
  { value: "default", label: "The usual directories" },
  { value: "chosen", label: "Directories that I choose" },
  { value: "none", label: "Nothing" },
] as const;

interface Props {
  /** Null: a new one. */
  project: Project | null;
  canChangeRules: boolean;
  onSaved: (project: Project) => void;
  onCancel: () => void;
}

export function ProjectForm({ project, canChangeRules, onSaved, onCancel }: Props) {
  const form = useForm<ProjectValues>({
    resolver: zodResolver(projectSchema),
    defaultValues: project === null ? NEW_PROJECT : valuesOf(project),
  });
  const { control, register, formState } = form;
  const { errors } = formState;
  const [kind, trust, caches] = useWatch({ control, name: ["kind", "trust", "caches"] });
  const isGuarded = project !== null && hasRules(project) && !canChangeRules;
  return (
    <EntryForm
      form={form}
      noun="project"
      isNew={project === null}
      send={(values) => saveProject(project?.id ?? null, toFields(values, project))}
      onSaved={onSaved}
      findField={findField}
      onCancel={onCancel}
      note={
        isGuarded
          ? "It has rules, so branch, trust and setup need the role policy_admin or admin."
          : project === null
            ? "The repository is read when a session first needs it."
            : undefined
      }
    >
      <fieldset className="flex flex-col gap-4">
        <legend className="sr-only">Project</legend>
        {project === null ? (
          <div className="grid grid-cols-[12rem_minmax(0,1fr)] gap-4 max-md:grid-cols-1">
            <Field label="The repository is at">
              {({ id }) => (
                <Controller
                  control={control}
                  name="kind"
                  render={({ field }) => (
                    <Select id={id} className="w-full" options={KINDS} value={field.value} onChange={field.onChange} />
                  )}
                />
              )}
            </Field>
            <Field
              label={kind === "url" ? "Address" : "Path"}
              error={errors.location?.message}
              hint={
                kind === "url"
                  ? "Without a user name or password."
                  : "Below the server's projects root. A repository is created there if none exists."
              }
            >
              {(field) => (
                <Input
                  {...field}
                  {...register("location")}
                  spellCheck={false}
                  placeholder={kind === "url" ? "https://git.example.com/team/website.git" : "team/website"}
                />
              )}
            </Field>
          </div>
        ) : (
          <p className="[overflow-wrap:anywhere] text-muted">
            <SafeText>{valuesOf(project).location}</SafeText>
          </p>
        )}
        <div className="grid grid-cols-2 gap-4 max-md:grid-cols-1">
          <Field
            label="Name"
            error={errors.name?.message}
            hint={project === null ? "Empty: from its location." : undefined}
          >
            {(field) => <Input {...field} {...register("name")} spellCheck={false} />}
          </Field>
          <Field label="Branch" error={errors.branch?.message} hint="Empty: the one that is checked out.">
            {(field) => <Input {...field} {...register("branch")} spellCheck={false} />}
          </Field>
        </div>
        <Field label="Trust in its own files" error={errors.trust?.message} hint={TRUST[trust].text}>
          {({ id }) => (
            <Controller
              control={control}
              name="trust"
              render={({ field }) => (
                <Select
                  id={id}
                  className="w-full"
                  options={TRUST_OPTIONS}
                  value={field.value}
                  onChange={field.onChange}
                />
              )}
            />
          )}
        </Field>
      </fieldset>
      <fieldset className="flex flex-col gap-4">
        <legend className="mb-3 font-semibold">Setup</legend>
        <Field
          label="Setup command"
          error={errors.setup?.message}
          hint="Prepares each session's tree. It runs again on another host, so it must be repeatable."
        >
          {(field) => (
            <Textarea
              {...field}
              {...register("setup")}
              rows={4}
              spellCheck={false}
              className="font-mono text-sm"
              placeholder="test -d node_modules || npm ci"
            />
          )}
        </Field>
        <Field label="Cache for later sessions">
          {({ id }) => (
            <Controller
              control={control}
              name="caches"
              render={({ field }) => (
                <Select id={id} className="w-full" options={CACHES} value={field.value} onChange={field.onChange} />
              )}
            />
          )}
        </Field>
        {caches === "chosen" && (
          <Field
            label="Cached directories"
            error={errors.directories?.message}
            hint="One per line. A name without a slash is found at any depth."
          >
            {(field) => (
              <Textarea
                {...field}
                {...register("directories")}
                rows={3}
                spellCheck={false}
                className="font-mono text-sm"
                placeholder="node_modules"
              />
            )}
          </Field>
        )}
      </fieldset>
    </EntryForm>
  );
}
