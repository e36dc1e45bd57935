// Creates a schedule, or changes one. Only what was changed is sent.
import { zodResolver } from "@hookform/resolvers/zod";
import { useBlocker } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { Controller, FormProvider, useForm, useWatch } from "react-hook-form";

import { displayShortcut } from "@/actions/shortcuts";
import { useAction } from "@/actions/use-actions";
import type { Agent, Environment, Project } from "@/api/queries/new-session";
import { createSchedule, type Schedule, updateSchedule } from "@/api/queries/schedules";
import { Button } from "@/design/components/button";
import { Checkbox } from "@/design/components/checkbox";
import { DiscardDialog } from "@/design/components/discard-dialog";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input, Textarea } from "@/design/components/input";
import { Select, type SelectOption } from "@/design/components/select";

import { findField, newValues, scheduleSchema, type ScheduleValues, toFields, valuesOf } from "./model";
import { TimesFields } from "./times-fields";
import { WorkFields } from "./work-fields";

export interface FormChoices {
  agents: readonly Agent[];
  environments: readonly Environment[];
  projects: readonly Project[];
}

interface Props {
  /** Null: a new one. */
  schedule: Schedule | null;
  choices: FormChoices;
  onSaved: (schedule: Schedule) => void;
  onCancel: () => void;
}

export function ScheduleForm({ schedule, choices, onSaved, onCancel }: Props) {
  const { agents, environments, projects } = choices;
  const isSaved = useRef(false);
  const form = useForm<ScheduleValues>({
    resolver: zodResolver(scheduleSchema),
    defaultValues:
      schedule === null
        ? newValues({ agentId: agents[0]?.id ?? "", environmentId: environments[0]?.id ?? "" })
        : valuesOf(schedule),
  });
  const { control, register, formState } = form;
  const { errors, isDirty, isSubmitting, dirtyFields } = formState;
  const agentId = useWatch({ control, name: "agentId" });
  const newest = agents.find((agent) => agent.id === agentId)?.version;
  const isOutdated = agentId === schedule?.agent.id && newest !== undefined && newest > schedule.agent.version;
  const blocker = useBlocker({
    shouldBlockFn: () => isDirty && !isSaved.current,
    enableBeforeUnload: () => isDirty && !isSaved.current,
    withResolver: true,
  });
  const [failure, setFailure] = useState<unknown>(null);
  async function save(values: ScheduleValues): Promise<void> {
    try {
      const saved = await (schedule === null
        ? createSchedule(toFields(values, null))
        : updateSchedule(schedule.id, toFields(values, dirtyFields)));
      isSaved.current = true;
      onSaved(saved);
    } catch (error) {
      const field = findField(error);
      const message = error instanceof Error ? error.message : String(error);
      form.setError(field ?? "root", { message, type: "server" }, { shouldFocus: true });
      setFailure(field === null ? error : null);
    }
  }
  function submit(): void {
    setFailure(null);
    void form.handleSubmit(save)();
  }
  useAction("schedules.save", submit);

  return (
    <FormProvider {...form}>
      <form
        className="mx-auto flex w-full max-w-3xl flex-col gap-8 p-6 max-md:p-4"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <fieldset className="flex flex-col gap-4">
          <legend className="sr-only">Name</legend>
          <Field label="Name" error={errors.name?.message}>
            {(field) => <Input {...field} {...register("name")} placeholder="Nightly build check" />}
          </Field>
          <Field label="Description" error={errors.description?.message} hint="Optional: what it is for.">
            {(field) => <Textarea {...field} {...register("description")} className="min-h-9" rows={1} />}
          </Field>
        </fieldset>
        <TimesFields />
        <WorkFields />
        <fieldset className="flex flex-col gap-4">
          <legend className="mb-3 font-semibold">Sessions</legend>
          <div className="grid grid-cols-3 gap-4 max-md:grid-cols-1">
            <Choice
              name="agentId"
              label="Agent"
              options={withCurrent(agents, schedule?.agent.id)}
              hint={
                schedule === null || isOutdated
                  ? undefined
                  : `Version ${agentId === schedule.agent.id ? schedule.agent.version : (newest ?? "")}`
              }
            />
            <Choice
              name="environmentId"
              label="Environment"
              options={withCurrent(environments, schedule?.environment_id)}
            />
            <Choice
              name="projectId"
              label="Project"
              options={withCurrent(projects, schedule?.project_ids[0])}
              clearLabel="No project, an empty directory"
              hint={
                schedule !== null && schedule.project_ids.length > 1
                  ? `It has ${schedule.project_ids.length} projects. They stay unless you choose another one.`
                  : undefined
              }
            />
          </div>
          {isOutdated && (
            <Controller
              control={control}
              name="updatesAgent"
              render={({ field }) => (
                <Checkbox checked={field.value} onCheckedChange={field.onChange}>
                  Use version {newest} of the agent instead of version {schedule.agent.version}
                </Checkbox>
              )}
            />
          )}
          <Controller
            control={control}
            name="endsWhenDone"
            render={({ field }) => (
              <Checkbox checked={field.value} onCheckedChange={field.onChange}>
                End each session when its work is done
              </Checkbox>
            )}
          />
        </fieldset>
        {failure !== null && <ErrorPanel title="The schedule was not saved" error={failure} />}
        {failure === null && Object.keys(errors).length > 0 && (
          <p role="status" className="text-sm text-failed">
            The schedule was not saved. Correct the marked fields.
          </p>
        )}
        <div className="flex flex-wrap items-center justify-end gap-2">
          {schedule !== null && (
            <span className="flex-1 text-sm text-muted max-md:basis-full">It runs in your name from then on.</span>
          )}
          <Button className="max-md:h-11 max-md:flex-1" onClick={onCancel}>
            Cancel
          </Button>
          <Button
            type="submit"
            variant="primary"
            className="max-md:h-11 max-md:flex-1"
            disabled={isSubmitting || (schedule !== null && !isDirty)}
            shortcut={displayShortcut("mod+enter").join(" ")}
          >
            {schedule === null ? "Create schedule" : "Save"}
          </Button>
        </div>
      </form>
      {blocker.status === "blocked" && (
        <DiscardDialog noun="schedule" onKeep={blocker.reset} onDiscard={blocker.proceed} />
      )}
    </FormProvider>
  );
}

interface ChoiceProps {
  name: "agentId" | "environmentId" | "projectId";
  label: string;
  options: SelectOption<string>[];
  clearLabel?: string;
  hint?: string | undefined;
}

function Choice({ name, label, options, clearLabel, hint }: ChoiceProps) {
  return (
    <Controller<ScheduleValues, ChoiceProps["name"]>
      name={name}
      render={({ field, fieldState }) => (
        <Field label={label} hint={hint} error={fieldState.error?.message}>
          {({ id }) => (
            <Select
              id={id}
              className="w-full"
              options={options}
              value={field.value}
              placeholder="Choose"
              {...(clearLabel === undefined ? {} : { clearLabel })}
              onChange={field.onChange}
            />
          )}
        </Field>
      )}
    />
  );
}

/** All that exist, and the one that the schedule has, which may be archived. */
function withCurrent(
  list: readonly { id: string; name: string }[],
  current: string | undefined,
): SelectOption<string>[] {
  const options = list.map(({ id, name }) => ({ value: id, label: name }));
  const isListed = current === undefined || list.some((one) => one.id === current);
  return isListed ? options : [{ value: current, label: `${current} (not listed any more)` }, ...options];
}
