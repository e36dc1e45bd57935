// Creates an agent, or changes one. Only what was changed is sent.
import { zodResolver } from "@hookform/resolvers/zod";
import { useId } from "react";
import { Controller, useForm, useWatch } from "react-hook-form";

import { type Agent, saveAgent } from "@/api/queries/agents";
import { Checkbox } from "@/design/components/checkbox";
import { Field } from "@/design/components/field";
import { Input, Textarea } from "@/design/components/input";
import { Select } from "@/design/components/select";

import { EntryForm } from "../work/entry-form";
import { agentSchema, type AgentValues, findField, newValues, toFields, valuesOf } from "./model";
import { findToolset, TOOL_SETTINGS, TOOLS } from "./toolset";

/** Those that Footplate has. A server can have others. */
const HARNESSES = ["native", "claude"];
const OUTCOMES = [
  { name: "deny", label: "Deny" },
  { name: "ask", label: "Ask" },
  { name: "allow", label: "Allow" },
] as const;

interface Props {
  /** Null: a new one. */
  agent: Agent | null;
  models: readonly string[];
  onSaved: (agent: Agent) => void;
  onCancel: () => void;
}

export function AgentForm({ agent, models, onSaved, onCancel }: Props) {
  const ids = useId();
  const form = useForm<AgentValues>({
    resolver: zodResolver(agentSchema),
    defaultValues: agent === null ? newValues("") : valuesOf(agent),
  });
  const { control, register, formState } = form;
  const { errors, dirtyFields } = formState;
  const hasTools = useWatch({ control, name: "hasTools" });
  const changesTools = agent !== null && hasTools && dirtyFields.tools !== undefined;
  const hadDefaults = agent !== null && hasAllowPolicy(agent);
  return (
    <EntryForm
      form={form}
      noun="agent"
      isNew={agent === null}
      send={(values) => saveAgent(agent?.id ?? null, toFields(values, agent))}
      onSaved={onSaved}
      findField={findField}
      onCancel={onCancel}
      note={agent === null ? undefined : "Sessions and schedules that exist stay with their version."}
    >
      <fieldset className="flex flex-col gap-4">
        <legend className="sr-only">Agent</legend>
        <Field label="Name" error={errors.name?.message}>
          {(field) => <Input {...field} {...register("name")} placeholder="engineer" />}
        </Field>
        <Field label="Description" error={errors.description?.message} hint="Optional: what it is for.">
          {(field) => <Textarea {...field} {...register("description")} className="min-h-9" rows={1} />}
        </Field>
        <div className="grid grid-cols-2 gap-4 max-md:grid-cols-1">
          <Field
            label="Model"
            error={errors.model?.message}
            hint={models.length === 0 ? "Such as anthropic/claude-sonnet-5." : "Choose one, or write another name."}
          >
            {(field) => (
              <Input {...field} {...register("model")} list={`${ids}-models`} spellCheck={false} autoComplete="off" />
            )}
          </Field>
          <Field label="Harness" error={errors.harness?.message} hint="Empty: the server's default.">
            {(field) => (
              <Input
                {...field}
                {...register("harness")}
                list={`${ids}-harnesses`}
                spellCheck={false}
                autoComplete="off"
              />
            )}
          </Field>
          <datalist id={`${ids}-models`}>
            {models.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          <datalist id={`${ids}-harnesses`}>
            {HARNESSES.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </div>
        <Field label="System prompt" error={errors.system?.message} hint="What it knows and does in every session.">
          {(field) => <Textarea {...field} {...register("system")} rows={10} />}
        </Field>
      </fieldset>
      <fieldset className="flex flex-col gap-4">
        <legend className="mb-3 font-semibold">Tools</legend>
        <Controller
          control={control}
          name="hasTools"
          render={({ field }) => (
            <Checkbox checked={field.value} onCheckedChange={field.onChange}>
              The built-in tools
            </Checkbox>
          )}
        />
        {hasTools && (
          <>
            <div className="grid grid-cols-2 gap-x-8 gap-y-2 max-md:grid-cols-1">
              {TOOLS.map((name) => (
                <div key={name} className="flex items-center gap-3">
                  <code className="w-24 font-mono text-sm">{name}</code>
                  <Controller
                    control={control}
                    name={`tools.${name}`}
                    render={({ field }) => (
                      <Select
                        label={name}
                        className="flex-1"
                        options={TOOL_SETTINGS}
                        value={field.value}
                        onChange={field.onChange}
                      />
                    )}
                  />
                </div>
              ))}
            </div>
            <p className="text-sm text-muted">
              A tool that is on and has no policy of its own follows the rules.
              {changesTools &&
                hadDefaults &&
                " The server reports such tools as always allowed. If you want that, whatever the rules ask for, choose it again."}
            </p>
            <Controller
              control={control}
              name="asksUser"
              render={({ field }) => (
                <Checkbox checked={field.value} onCheckedChange={field.onChange}>
                  It can ask you questions
                </Checkbox>
              )}
            />
            <Controller
              control={control}
              name="spawnsSessions"
              render={({ field }) => (
                <Checkbox checked={field.value} onCheckedChange={field.onChange}>
                  It can start child sessions
                </Checkbox>
              )}
            />
          </>
        )}
      </fieldset>
      <fieldset className="flex flex-col gap-4">
        <legend className="mb-1 font-semibold">Rules</legend>
        <p className="text-sm text-muted">
          One per line, such as <code className="font-mono">Bash(git push *)</code>. A denial counts before a question,
          and a question before a permission.
        </p>
        <div className="grid grid-cols-3 gap-4 max-md:grid-cols-1">
          {OUTCOMES.map(({ name, label }) => (
            <Field key={name} label={label} error={errors[name]?.message}>
              {(field) => (
                <Textarea {...field} {...register(name)} rows={3} spellCheck={false} className="font-mono text-sm" />
              )}
            </Field>
          ))}
        </div>
      </fieldset>
      <Field
        label="Further fields"
        error={errors.further?.message}
        hint="All other fields of the API, as JSON: mcp_servers, further tools, limits, multiagent, metadata …"
      >
        {(field) => (
          <Textarea
            {...field}
            {...register("further")}
            rows={6}
            spellCheck={false}
            className="font-mono text-sm"
            placeholder={'{"limits": {"max_iterations": 50}}'}
          />
        )}
      </Field>
    </EntryForm>
  );
}

/** Whether the server reports a policy that was set, or is only the default: it does not say which. */
function hasAllowPolicy(agent: Agent): boolean {
  const toolset = findToolset(agent);
  const policies = [toolset?.default_config, ...(toolset?.configs ?? [])];
  return policies.some((one) => one?.permission_policy.type === "always_allow");
}
