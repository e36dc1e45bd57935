// Where the task is done, by which agent, and how often.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import {
  type Agent,
  agentVersionsQuery,
  type Backend,
  backendsQuery,
  type Environment,
  type Project,
} from "@/api/queries/new-session";
import { Field } from "@/design/components/field";
import { Input, Textarea } from "@/design/components/input";
import { Select } from "@/design/components/select";

import { type Draft, MOST_ATTEMPTS } from "./draft";
import type { FieldErrors } from "./errors";

interface Props {
  draft: Draft;
  errors: FieldErrors;
  isDisabled: boolean;
  onChange: (change: Partial<Draft>) => void;
}

const ATTEMPTS = Array.from({ length: MOST_ATTEMPTS }, (_, index) => ({
  value: String(index + 1),
  label: index === 0 ? "1 attempt" : `${index + 1} attempts`,
}));

interface MainProps extends Props {
  agents: readonly Agent[];
  projects: readonly Project[];
}

export function MainChoices({ draft, errors, isDisabled, onChange, agents, projects }: MainProps) {
  return (
    <div className="grid grid-cols-3 gap-3 max-md:grid-cols-1">
      <Field
        label="Project"
        error={errors.project}
        hint={
          <>
            {projects.length === 0 && "No project yet. "}
            <Link to="/settings" search={{ section: "projects", item: "new" }} className="underline hover:text-text">
              Add a repository
            </Link>
          </>
        }
      >
        {({ id }) => (
          <Select
            id={id}
            className="w-full"
            disabled={isDisabled}
            options={projects.map((project) => ({
              value: project.id,
              label: project.branch === null ? project.name : `${project.name} · ${project.branch}`,
            }))}
            value={draft.projectId}
            clearLabel="No project, an empty directory"
            onChange={(projectId) => {
              onChange({ projectId });
            }}
          />
        )}
      </Field>
      <Field label="Agent" error={errors.agent}>
        {({ id }) => (
          <Select
            id={id}
            className="w-full"
            disabled={isDisabled}
            options={agents.map((agent) => ({ value: agent.id, label: `${agent.name} · ${shortModel(agent)}` }))}
            value={draft.agentId}
            placeholder="Choose an agent"
            onChange={(agentId) => {
              onChange({ agentId, agentVersion: null });
            }}
          />
        )}
      </Field>
      <Field label="Attempts" error={errors.attempts}>
        {({ id }) => (
          <Select
            id={id}
            className="w-full"
            disabled={isDisabled}
            options={ATTEMPTS}
            value={String(draft.attempts)}
            onChange={(attempts) => {
              onChange({ attempts: Number(attempts ?? 1) });
            }}
          />
        )}
      </Field>
      {draft.attempts > 1 && (
        <div className="col-span-full">
          <Field
            label="Check"
            error={errors.check}
            hint={
              draft.check.trim() === ""
                ? "Optional: a command, such as pytest -q. Without it, you compare the attempts yourself."
                : "The files of the first attempt whose check exits with 0 are kept."
            }
          >
            {(control) => (
              <Input
                {...control}
                className="font-mono"
                placeholder="pytest -q"
                disabled={isDisabled}
                value={draft.check}
                onValueChange={(check) => {
                  onChange({ check });
                }}
              />
            )}
          </Field>
        </div>
      )}
    </div>
  );
}

function shortModel(agent: Agent): string {
  return agent.model.id.split(/[/:]/).at(-1) ?? agent.model.id;
}

interface MoreProps extends Props {
  environments: readonly Environment[];
}

export function MoreOptions({ draft, errors, isDisabled, onChange, environments }: MoreProps) {
  const versions = useQuery({ ...agentVersionsQuery(draft.agentId ?? ""), enabled: draft.agentId !== null });
  const backends = useQuery(backendsQuery);
  return (
    <div className="grid grid-cols-3 gap-3 max-md:grid-cols-1">
      <div className="col-span-full">
        <Field label="Title" error={errors.title}>
          {(control) => (
            <Input
              {...control}
              placeholder="The first line of the task"
              disabled={isDisabled}
              value={draft.title}
              onValueChange={(title) => {
                onChange({ title });
              }}
            />
          )}
        </Field>
      </div>
      <Field label="Version of the agent" error={errors.version}>
        {({ id }) => (
          <Select
            id={id}
            className="w-full"
            disabled={isDisabled}
            options={(versions.data?.data ?? []).map(({ version }) => ({
              value: String(version),
              label: `Version ${version}`,
            }))}
            value={draft.agentVersion === null ? null : String(draft.agentVersion)}
            clearLabel="The newest"
            onChange={(version) => {
              onChange({ agentVersion: version === null ? null : Number(version) });
            }}
          />
        )}
      </Field>
      <Field label="Environment" error={errors.environment}>
        {({ id }) => (
          <Select
            id={id}
            className="w-full"
            disabled={isDisabled}
            options={environments.map(({ id: value, name }) => ({ value, label: name }))}
            value={draft.environmentId}
            placeholder="A new one, named default"
            onChange={(environmentId) => {
              onChange({ environmentId });
            }}
          />
        )}
      </Field>
      <Field label="Commands run in" error={errors.backend}>
        {({ id }) => (
          <Select
            id={id}
            className="w-full"
            disabled={isDisabled}
            options={(backends.data?.data ?? []).map((backend) => ({
              value: backend.name,
              label: describeBackend(backend),
            }))}
            value={draft.backend}
            clearLabel="As the environment says"
            onChange={(backend) => {
              onChange({ backend });
            }}
          />
        )}
      </Field>
      <Field label="Mode" error={errors.mode}>
        {({ id }) => (
          <Select
            id={id}
            className="w-full"
            disabled={isDisabled}
            options={[
              { value: "interactive", label: "Interactive" },
              { value: "background", label: "Background, without previews" },
            ]}
            value={draft.mode}
            onChange={(mode) => {
              onChange({ mode: mode ?? "interactive" });
            }}
          />
        )}
      </Field>
      <Field label="Who sees it" error={errors.visibility}>
        {({ id }) => (
          <Select
            id={id}
            className="w-full"
            disabled={isDisabled}
            options={[
              { value: "organisation", label: "Everyone in the organisation" },
              { value: "private", label: "Only you" },
            ]}
            value={draft.visibility}
            onChange={(visibility) => {
              onChange({ visibility: visibility ?? "organisation" });
            }}
          />
        )}
      </Field>
      <Limits draft={draft} errors={errors} isDisabled={isDisabled} onChange={onChange} />
      <Rules draft={draft} errors={errors} isDisabled={isDisabled} onChange={onChange} />
    </div>
  );
}

function describeBackend({ name, workers, is_default }: Backend): string {
  const notes = [...(is_default ? ["default"] : []), ...(workers === 0 ? ["no worker offers it"] : [])];
  return notes.length === 0 ? name : `${name} (${notes.join(", ")})`;
}

function Limits({ draft, errors, isDisabled, onChange }: Props) {
  return (
    <>
      <div className="max-md:hidden" />
      <Field label="Model requests per turn" error={errors.maxIterations} hint="Empty: as the agent says">
        {(control) => (
          <Input
            {...control}
            inputMode="numeric"
            disabled={isDisabled}
            value={draft.maxIterations}
            onValueChange={(text) => {
              onChange({ maxIterations: text.replaceAll(/\D/g, "") });
            }}
          />
        )}
      </Field>
      <Field label="Minutes per turn" error={errors.timeout} hint="Empty: as the agent says">
        {(control) => (
          <Input
            {...control}
            inputMode="numeric"
            disabled={isDisabled}
            value={draft.timeoutMinutes}
            onValueChange={(text) => {
              onChange({ timeoutMinutes: text.replaceAll(/\D/g, "") });
            }}
          />
        )}
      </Field>
    </>
  );
}

const RULES = [
  { name: "allow", label: "Allow", placeholder: "Bash(npm test)" },
  { name: "ask", label: "Ask first", placeholder: "Bash(git push *)" },
  { name: "deny", label: "Deny", placeholder: "Bash(rm -rf *)" },
] as const;

function Rules({ draft, errors, isDisabled, onChange }: Props) {
  return (
    <div className="col-span-full grid grid-cols-3 gap-3 max-md:grid-cols-1">
      {RULES.map(({ name, label, placeholder }) => (
        <Field key={name} label={label} error={errors[name]} hint="One rule per line">
          {(control) => (
            <Textarea
              {...control}
              className="min-h-16 font-mono text-sm"
              placeholder={placeholder}
              disabled={isDisabled}
              value={draft[name]}
              onChange={(event) => {
                onChange({ [name]: event.target.value });
              }}
            />
          )}
        </Field>
      ))}
    </div>
  );
}
