// What a step does, how it is doing and why it waits, in words; and the order of the queue.
import type { components } from "@/api/schema";
import { splitHidden } from "@/design/text/safe-text";

export type Step = components["schemas"]["Step"];
export type StepKind = Step["kind"];
export type Playback = components["schemas"]["Playback"];

export const ENDED_STATES: readonly Step["state"][] = ["completed", "failed", "skipped", "cancelled"];

/** A session of a parallel step, as it is queued or as its result names it. */
export interface GroupMember {
  index: number;
  name: string | null;
  title: string | null;
  /** What it does: its only prompt or command, or how many steps it has. */
  work: string;
  sessionId: string | null;
  outcome: string | null;
  error: string | null;
  text: string;
  conflicts: readonly string[];
}

export interface Reference {
  text: string;
  step: string;
  field: string;
}

const LABEL_LENGTH = 60;
const REFERENCE = /\$\{steps\.([A-Za-z_][A-Za-z0-9_]*)(?:\.([^}]*))?\}/g;
const PENDING_WORDS: Record<string, string> = { retry: "tries again soon" };
const RUNNING_WORDS: Record<string, string> = {
  action: "needs approval",
  sessions: "waits for its sessions",
};

function field(step: Step, name: string): string | null {
  const value = step[name];
  return typeof value === "string" ? value : null;
}

export function isPending(step: Step): boolean {
  return step.state === "pending";
}

export function hasEnded(step: Step): boolean {
  return ENDED_STATES.includes(step.state);
}

/** The id of a message, which is the step that it waits as, without the prefix of its type. */
export function bareId(id: string): string {
  return id.slice(id.indexOf("_") + 1);
}

/** The steps, with the content of those that are messages: it is in the log of the session only. */
export function addMessageContent(
  steps: readonly Step[],
  messages: readonly { id: string; content?: unknown }[],
): Step[] {
  const contents = new Map(messages.map((message) => [bareId(message.id), message.content]));
  return steps.map((step) => {
    const content = step.is_message ? contents.get(bareId(step.id)) : undefined;
    return content === undefined ? step : { ...step, content };
  });
}

/** The text that a person wrote: the prompt, the command, the instructions, or the branch. */
export function stepText(step: Step): string {
  switch (step.kind) {
    case "prompt":
      return contentText(step["content"]);
    case "shell":
      return field(step, "command") ?? "";
    case "external":
      return field(step, "instructions") ?? "";
    case "parallel": {
      const members = groupMembers(step);
      return `${members.length} ${members.length === 1 ? "session" : "sessions"}${branchesText(step)}`;
    }
    case "merge":
      return `into ${field(step, "into") ?? "the branch that the session started from"}`;
    case "push":
      return `as ${field(step, "branch") ?? "a branch with the ID of the session"}`;
    case "terminal":
      return "a shell that a person opened";
  }
}

function branchesText(step: Step): string {
  const branches = field(step, "branches");
  if (branches === "best") {
    return ", take over the best";
  }
  return branches === "merge" ? ", merge their changes" : "";
}

export function contentText(content: unknown): string {
  if (typeof content === "string") {
    return content;
  }
  return Array.isArray(content) ? content.map(blockText).join("\n") : "";
}

function blockText(block: unknown): string {
  if (typeof block !== "object" || block === null) {
    return "";
  }
  if ("text" in block && typeof block.text === "string") {
    return block.text;
  }
  const title = "title" in block && typeof block.title === "string" ? block.title : null;
  const type = "type" in block && typeof block.type === "string" ? block.type : "attachment";
  return title === null ? `[${type}]` : `[${type}: ${title}]`;
}

/** Whether the prompt has only text, so that a text field can edit it. */
export function isPlainPrompt(step: Step): boolean {
  const content = step["content"];
  return typeof content === "string" || (Array.isArray(content) && content.length === 1 && isTextBlock(content[0]));
}

function isTextBlock(block: unknown): boolean {
  return typeof block === "object" && block !== null && "type" in block && block.type === "text";
}

/** The name, or else the start of what it does. */
export function stepLabel(step: Step): string {
  const label = shortLabel(step.name ?? stepText(step).trim());
  // The text of an old message is in the conversation only.
  return label === "" && step.is_message ? "a message" : label;
}

/** A text for a sentence of the page: short, on one line, its hidden characters marked. */
export function shortLabel(text: string): string {
  const start = text.length > LABEL_LENGTH ? `${text.slice(0, LABEL_LENGTH)}…` : text;
  return splitHidden(start.replaceAll(/\s+/g, " "))
    .map((part) => part.mark ?? part.text)
    .join("");
}

/** Why it is not done, such as "needs approval"; or how it ended. */
export function describeState(step: Step): string {
  switch (step.state) {
    case "pending":
      return PENDING_WORDS[step.waiting_for ?? ""] ?? "waiting";
    case "running":
      if (step.kind === "external") {
        return "waits for a client";
      }
      return step.kind === "terminal" ? "open" : (RUNNING_WORDS[step.waiting_for ?? ""] ?? "running");
    case "completed":
      return "done";
    default:
      return step.state;
  }
}

export function needsPerson(step: Step): boolean {
  return step.state === "running" && (step.waiting_for === "action" || step.kind === "external");
}

export function describeFailurePolicy(step: Step): string {
  switch (step.on_failure) {
    case "continue":
      return "The next step runs.";
    case "retry":
      return `It is tried again, at most ${step.max_attempts} times in all. Then the queue is paused.`;
    case "stop":
      return "The queue is paused.";
  }
}

export function describePause(playback: Playback): string {
  switch (playback.pause_reason) {
    case "step_failed":
      return "Paused because a step failed. Repeat it, or play to go on without it.";
    case "group":
      return "Starts when another session of its group has ended.";
    default:
      return "Paused. The current step finishes, and no other starts.";
  }
}

/** The results of earlier steps that the step uses, each once. */
export function findReferences(step: Step): Reference[] {
  const texts = [stepText(step), field(step, "message") ?? "", ...groupMembers(step).map((member) => member.work)];
  const found = new Map<string, Reference>();
  for (const match of texts.join("\n").matchAll(REFERENCE)) {
    found.set(match[0], { text: match[0], step: match[1] ?? "", field: match[2] ?? "" });
  }
  return [...found.values()];
}

export function groupMembers(step: Step): GroupMember[] {
  if (step.kind !== "parallel") {
    return [];
  }
  const requested = asObjects(step["sessions"]);
  const results = new Map(asObjects(step.result?.sessions).map((each, at) => [Number(each["index"] ?? at), each]));
  return requested.map((request, index) => {
    const result = results.get(index) ?? {};
    return {
      index,
      name: text(result["name"]) ?? text(request["name"]),
      title: text(request["title"]),
      work: memberWork(request),
      sessionId: text(result["session_id"]),
      outcome: text(result["outcome"]),
      error: text(result["error"]),
      text: text(result["text"]) ?? "",
      conflicts: Array.isArray(result["conflicts"]) ? result["conflicts"].map(String) : [],
    };
  });
}

function memberWork(request: Record<string, unknown>): string {
  const steps = asObjects(request["steps"]);
  const [only] = steps;
  const texts = steps.map((one) => text(one["command"]) ?? text(one["instructions"]) ?? contentText(one["content"]));
  return only !== undefined && steps.length === 1 ? (texts[0] ?? "") : texts.join(" → ");
}

function asObjects(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value)
    ? value.filter((each): each is Record<string, unknown> => typeof each === "object" && each !== null)
    : [];
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

/** The queue with a pending step moved before another one, or to the end (`null`). Ended steps keep their place. */
export function moveBefore(steps: readonly Step[], id: string, before: string | null): Step[] {
  const moved = steps.find((step) => step.id === id);
  if (moved === undefined || id === before) {
    return [...steps];
  }
  const others = steps.filter((step) => step.id !== id);
  const at = before === null ? others.length : others.findIndex((step) => step.id === before);
  return at < 0 ? [...steps] : [...others.slice(0, at), moved, ...others.slice(at)];
}

/** What `move` needs so that a pending step gets to this place among the pending ones. */
export function targetOf(pending: readonly Step[], id: string, index: number): string | null | undefined {
  const from = pending.findIndex((step) => step.id === id);
  if (from < 0 || index < 0 || index >= pending.length || index === from) {
    return undefined;
  }
  const others = pending.filter((step) => step.id !== id);
  return others[index]?.id ?? null;
}

/** The steps in three parts: ended, running, pending. */
export function splitQueue(steps: readonly Step[]): { ended: Step[]; running: Step[]; pending: Step[] } {
  return {
    ended: steps.filter(hasEnded),
    running: steps.filter((step) => step.state === "running"),
    pending: steps.filter(isPending),
  };
}
