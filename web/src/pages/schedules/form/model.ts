// The values of the form of a schedule: from a schedule, checked, and as fields of a request.
import { ApiError } from "@/api/errors";
import type { Schedule } from "@/api/queries/schedules";
import { z } from "@/design/zod";
import { contentText, isPlainPrompt, type Step, stepText } from "@/pages/session/steps/model";

const LONGEST_NAME = 256;
const LONGEST_DESCRIPTION = 2048;
const MIN_CATCH_UP = 10;
const MAX_CATCH_UP = 31 * 24 * 3600;

const step = z.object({
  /** `fixed`: a step that this form shows and keeps, but cannot edit. */
  kind: z.enum(["prompt", "shell", "fixed"]),
  text: z.string(),
  /** The step as the server has it, whose other fields stay. */
  stored: z.record(z.string(), z.unknown()),
});

export const scheduleSchema = z
  .object({
    name: z
      .string()
      .trim()
      .min(1, "Give the schedule a name.")
      .max(LONGEST_NAME, `Shorten it to ${LONGEST_NAME} characters.`),
    description: z.string().max(LONGEST_DESCRIPTION, `Shorten it to ${LONGEST_DESCRIPTION} characters.`),
    starts: z.enum(["times", "request"]),
    expression: z.string(),
    timezone: z.string(),
    agentId: z.string().min(1, "Choose an agent."),
    /** Whether the newest version of the same agent is taken. */
    updatesAgent: z.boolean(),
    environmentId: z.string().min(1, "Choose an environment."),
    projectId: z.string().nullable(),
    prompt: z.string(),
    steps: z.array(step),
    overlap: z.enum(["allow_all", "skip", "buffer_one", "cancel_other"]),
    catchUp: z
      .string()
      .refine(
        (text) => /^\d+$/.test(text) && Number(text) >= MIN_CATCH_UP && Number(text) <= MAX_CATCH_UP,
        `Write a number of seconds from ${MIN_CATCH_UP} to ${MAX_CATCH_UP.toLocaleString("en-US")}.`,
      ),
    endsWhenDone: z.boolean(),
    /** Messages that a text field cannot edit. They stay. */
    hasFixedMessages: z.boolean(),
  })
  .superRefine((values, context) => {
    const refuse = (path: (string | number)[], message: string): void => {
      context.addIssue({ code: "custom", path, message });
    };
    if (values.starts === "times" && values.expression.trim() === "") {
      refuse(["expression"], "Write when it runs, such as 0 9 * * 1-5.");
    }
    if (values.starts === "times" && values.timezone.trim() === "") {
      refuse(["timezone"], "Choose a time zone.");
    }
    if (values.prompt.trim() === "" && values.steps.length === 0 && !values.hasFixedMessages) {
      refuse(["prompt"], "Write a message to the agent, or add a step.");
    }
    values.steps.forEach((one, index) => {
      if (one.kind !== "fixed" && one.text.trim() === "") {
        refuse(["steps", index, "text"], one.kind === "shell" ? "Write a command." : "Write a message.");
      }
    });
  });

export type ScheduleValues = z.infer<typeof scheduleSchema>;
export type StepValues = ScheduleValues["steps"][number];

export const EMPTY_STEP: StepValues = { kind: "shell", text: "", stored: {} };

export function newValues(defaults: { agentId: string; environmentId: string }): ScheduleValues {
  return {
    name: "",
    description: "",
    starts: "times",
    expression: "0 9 * * 1-5",
    timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    ...defaults,
    updatesAgent: false,
    projectId: null,
    prompt: "",
    steps: [],
    overlap: "allow_all",
    catchUp: "600",
    endsWhenDone: true,
    hasFixedMessages: false,
  };
}

export function valuesOf(schedule: Schedule): ScheduleValues {
  const [message, ...others] = schedule.initial_events;
  const isPlain = message === undefined || (others.length === 0 && isPlainPrompt(message as unknown as Step));
  const { schedule: cron } = schedule;
  return {
    name: schedule.name,
    description: schedule.description ?? "",
    starts: cron === null ? "request" : "times",
    expression: cron?.expression ?? "0 9 * * 1-5",
    timezone: cron?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
    agentId: schedule.agent.id,
    updatesAgent: false,
    environmentId: schedule.environment_id,
    projectId: schedule.project_ids[0] ?? null,
    prompt: isPlain ? contentText(message?.["content"] ?? "") : "",
    steps: schedule.steps.map((stored) => stepValues(stored)),
    overlap: schedule.overlap_policy,
    catchUp: String(schedule.catch_up_seconds),
    endsWhenDone: schedule.ends_when_done,
    hasFixedMessages: !isPlain,
  };
}

function stepValues(stored: Record<string, unknown>): StepValues {
  const one = stored as unknown as Step;
  const isEditable = one.kind === "shell" || (one.kind === "prompt" && isPlainPrompt(one));
  return { kind: isEditable ? (one.kind as "shell" | "prompt") : "fixed", text: stepText(one), stored };
}

function stepFields({ kind, text, stored }: StepValues): Record<string, unknown> {
  if (kind === "fixed") {
    return stored;
  }
  const isSame = stored["kind"] === kind;
  return { ...(isSame ? stored : {}), kind, ...(kind === "shell" ? { command: text } : { content: text }) };
}

type Changed = Partial<Record<keyof ScheduleValues, unknown>>;

/** The fields of a request: all of a new schedule, or those that were changed. */
export function toFields(values: ScheduleValues, changed: Changed | null): Record<string, unknown> {
  const has = (...names: (keyof ScheduleValues)[]): boolean =>
    changed === null || names.some((name) => changed[name] !== undefined && changed[name] !== false);
  const prompt = values.prompt.trim() === "" ? [] : [{ type: "text", text: values.prompt }];
  const cron = { type: "cron", expression: values.expression.trim(), timezone: values.timezone.trim() };
  return {
    ...(has("name") ? { name: values.name.trim() } : {}),
    ...(has("description") ? { description: values.description.trim() || null } : {}),
    ...(has("starts", "expression", "timezone") ? { schedule: values.starts === "times" ? cron : null } : {}),
    ...(has("agentId", "updatesAgent") ? { agent: values.agentId } : {}),
    ...(has("environmentId") ? { environment_id: values.environmentId } : {}),
    ...(has("projectId") ? { project_ids: values.projectId === null ? [] : [values.projectId] } : {}),
    ...(has("prompt")
      ? { initial_events: prompt.length === 0 ? [] : [{ type: "user.message", content: prompt }] }
      : {}),
    ...(has("steps") ? { steps: values.steps.map((one) => stepFields(one)) } : {}),
    ...(has("overlap") ? { overlap_policy: values.overlap } : {}),
    ...(has("catchUp") ? { catch_up_seconds: Number(values.catchUp) } : {}),
    ...(has("endsWhenDone") ? { ends_when_done: values.endsWhenDone } : {}),
  };
}

type FieldPath = keyof ScheduleValues | `steps.${number}.text`;

/** By the beginning of the server's name of the field. The first one that fits counts. */
const FIELDS: readonly [RegExp, FieldPath][] = [
  [/^schedule\.timezone/, "timezone"],
  [/^schedule/, "expression"],
  [/^name/, "name"],
  [/^description/, "description"],
  [/^agent/, "agentId"],
  [/^environment_id/, "environmentId"],
  [/^(project_ids|workspace_id|context)/, "projectId"],
  [/^initial_events/, "prompt"],
  [/^overlap_policy/, "overlap"],
  [/^catch_up_seconds/, "catchUp"],
];

/** The field of the form that an error of the server is about. Null: none of them. */
export function findField(error: unknown): FieldPath | null {
  if (!(error instanceof ApiError) || error.field === null) {
    return null;
  }
  const { field } = error;
  const index = /^steps\.(\d+)/.exec(field)?.[1];
  return index === undefined
    ? (FIELDS.find(([pattern]) => pattern.test(field))?.[1] ?? null)
    : `steps.${Number(index)}.text`;
}
