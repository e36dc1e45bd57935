// What each session of a schedule does: a message to the agent, and steps that follow it.
import { ArrowDown, ArrowUp, Plus, Trash2 } from "lucide-react";
import { Controller, useFieldArray, useFormContext, useWatch } from "react-hook-form";

import { useAction } from "@/actions/use-actions";
import { Button } from "@/design/components/button";
import { Field } from "@/design/components/field";
import { Textarea } from "@/design/components/input";
import { Select } from "@/design/components/select";
import { CodeBlock } from "@/design/text/text";
import { KINDS } from "@/pages/session/steps/marks";
import type { StepKind } from "@/pages/session/steps/model";

import { EMPTY_STEP, type ScheduleValues } from "./model";

const STEP_KINDS = [
  { value: "shell", label: "Command" },
  { value: "prompt", label: "Message to the agent" },
] as const;

export function WorkFields() {
  const { control, register, formState } = useFormContext<ScheduleValues>();
  const steps = useFieldArray({ control, name: "steps" });
  const hasFixedMessages = useWatch({ control, name: "hasFixedMessages" });
  function add(): void {
    steps.append(EMPTY_STEP, { focusName: `steps.${steps.fields.length}.text` });
  }
  useAction("schedules.add-step", add);
  return (
    <fieldset className="flex flex-col gap-4">
      <legend className="mb-3 font-semibold">Work</legend>
      {hasFixedMessages ? (
        <p className="text-muted">
          The sessions start with messages that this form cannot edit, such as one with a file. They stay as they are.
          Change them with the API.
        </p>
      ) : (
        <Field
          label="Message to the agent"
          error={formState.errors.prompt?.message}
          hint="May be empty if there are steps."
        >
          {(field) => (
            <Textarea {...field} {...register("prompt")} rows={4} placeholder="Check the build and fix what is red." />
          )}
        </Field>
      )}
      {steps.fields.length > 0 && (
        <ol aria-label="Steps" className="flex flex-col gap-3">
          {steps.fields.map((step, index) => (
            <li key={step.id} className="flex flex-col gap-2 border-l-2 border-line-strong pl-3">
              <div className="flex items-center gap-1">
                <span className="flex-1 text-sm text-muted">
                  Step {index + 1}
                  {step.kind === "fixed" && ` · ${KINDS[step.stored["kind"] as StepKind].title}`}
                </span>
                <Button
                  variant="quiet"
                  size="icon"
                  className="max-md:size-11"
                  aria-label={`Move step ${index + 1} up`}
                  disabled={index === 0}
                  onClick={() => {
                    steps.move(index, index - 1);
                  }}
                >
                  <ArrowUp />
                </Button>
                <Button
                  variant="quiet"
                  size="icon"
                  className="max-md:size-11"
                  aria-label={`Move step ${index + 1} down`}
                  disabled={index === steps.fields.length - 1}
                  onClick={() => {
                    steps.move(index, index + 1);
                  }}
                >
                  <ArrowDown />
                </Button>
                <Button
                  variant="quiet"
                  size="icon"
                  className="max-md:size-11"
                  aria-label={`Remove step ${index + 1}`}
                  onClick={() => {
                    steps.remove(index);
                  }}
                >
                  <Trash2 />
                </Button>
              </div>
              {step.kind === "fixed" ? (
                <CodeBlock label={`Step ${index + 1}`} className="max-h-40 whitespace-pre-wrap">
                  {step.text}
                </CodeBlock>
              ) : (
                <StepFields index={index} />
              )}
            </li>
          ))}
        </ol>
      )}
      <div className="flex flex-wrap items-center gap-3">
        <Button className="max-md:h-11" onClick={add}>
          <Plus aria-hidden />
          Add a step
        </Button>
        <span className="text-sm text-muted">Steps run after the message, one after the other.</span>
      </div>
    </fieldset>
  );
}

function StepFields({ index }: { index: number }) {
  const { control, register, formState } = useFormContext<ScheduleValues>();
  const kind = useWatch({ control, name: `steps.${index}.kind` });
  const isShell = kind === "shell";
  return (
    <>
      <Controller
        control={control}
        name={`steps.${index}.kind`}
        render={({ field }) => (
          <Select
            label={`Kind of step ${index + 1}`}
            className="w-56"
            options={STEP_KINDS}
            value={field.value === "fixed" ? null : field.value}
            onChange={field.onChange}
          />
        )}
      />
      <Field label={isShell ? "Command" : "Message"} error={formState.errors.steps?.[index]?.text?.message}>
        {(field) => (
          <Textarea
            {...field}
            {...register(`steps.${index}.text`)}
            rows={2}
            spellCheck={!isShell}
            className={isShell ? "min-h-9 font-mono text-sm" : "min-h-9"}
            placeholder={isShell ? "make test" : "Explain what failed."}
          />
        )}
      </Field>
    </>
  );
}
