// A step as a person edits it, and as the API takes it.
import type { StepEdit, StepInput } from "./changes";
import { groupMembers, type Step, stepText } from "./model";

export type DraftKind = "prompt" | "shell" | "external" | "parallel" | "merge" | "push";

export interface DraftMember {
  kind: "prompt" | "shell";
  text: string;
}

export interface StepDraft {
  kind: DraftKind;
  /** The prompt, the command or the instructions. */
  text: string;
  name: string;
  condition: string;
  onFailure: Step["on_failure"];
  attempts: string;
  timeout: string;
  onTerminal: boolean;
  endsSession: boolean;
  branch: string;
  message: string;
  members: readonly DraftMember[];
  branches: "none" | "merge" | "best";
  check: string;
}

export const EMPTY_DRAFT: StepDraft = {
  kind: "prompt",
  text: "",
  name: "",
  condition: "",
  onFailure: "stop",
  attempts: "3",
  timeout: "",
  onTerminal: false,
  endsSession: false,
  branch: "",
  message: "",
  members: [
    { kind: "prompt", text: "" },
    { kind: "prompt", text: "" },
  ],
  branches: "none",
  check: "",
};

export const TEXT_KINDS: readonly DraftKind[] = ["prompt", "shell", "external"];

export function draftOf(step: Step): StepDraft {
  const read = (name: string): string => {
    const value = step[name];
    return typeof value === "string" ? value : "";
  };
  const branches = read("branches");
  return {
    kind: step.kind === "terminal" ? "shell" : step.kind,
    text: TEXT_KINDS.includes(step.kind as DraftKind) ? stepText(step) : "",
    name: step.name ?? "",
    condition: step.condition ?? "",
    onFailure: step.on_failure,
    attempts: String(step.max_attempts),
    timeout: step.timeout_seconds === null ? "" : String(step.timeout_seconds),
    onTerminal: step["terminal"] === true,
    endsSession: step.ends_session,
    branch: step.kind === "merge" ? read("into") : read("branch"),
    message: read("message"),
    members: groupMembers(step).map((member) => ({ kind: "prompt", text: member.work })),
    branches: branches === "best" || branches === "merge" ? branches : "none",
    check: read("check"),
  };
}

/** What is missing, in words. Null: it can be sent. The server checks the rest. */
export function findProblem(draft: StepDraft): string | null {
  if (TEXT_KINDS.includes(draft.kind) && draft.kind !== "external" && draft.text.trim() === "") {
    return draft.kind === "prompt" ? "Write the prompt." : "Write the command.";
  }
  if (draft.kind === "parallel" && draft.members.every((member) => member.text.trim() === "")) {
    return "Describe at least one session.";
  }
  return draft.kind === "parallel" && draft.branches === "best" && draft.check.trim() === ""
    ? "Write the command that decides which session is the best."
    : null;
}

function common(draft: StepDraft) {
  const timeout = Number(draft.timeout);
  const hasTimeout = draft.kind === "prompt" || draft.kind === "shell";
  return {
    name: draft.name.trim() === "" ? null : draft.name.trim(),
    condition: draft.condition.trim() === "" ? null : draft.condition.trim(),
    on_failure: draft.onFailure,
    max_attempts: draft.onFailure === "retry" ? Number(draft.attempts) || 3 : 3,
    ends_session: draft.endsSession,
    ...(hasTimeout ? { timeout_seconds: draft.timeout.trim() === "" || Number.isNaN(timeout) ? null : timeout } : {}),
  };
}

export function toInput(draft: StepDraft): StepInput {
  return { kind: draft.kind, ...common(draft), ...specific(draft) };
}

/** The fields that a person can change in a step that is queued. A parallel step keeps its sessions. */
export function toEdit(draft: StepDraft): StepEdit {
  return { ...common(draft), ...(draft.kind === "parallel" ? {} : specific(draft)) };
}

function specific(draft: StepDraft): Record<string, unknown> {
  const branch = draft.branch.trim() === "" ? null : draft.branch.trim();
  const message = draft.message.trim() === "" ? null : draft.message;
  switch (draft.kind) {
    case "prompt":
      return { content: draft.text };
    case "shell":
      return { command: draft.text, terminal: draft.onTerminal };
    case "external":
      return { instructions: draft.text };
    case "merge":
      return { into: branch, message };
    case "push":
      return { branch, message };
    case "parallel":
      return {
        sessions: draft.members
          .filter((member) => member.text.trim() !== "")
          .map((member) => (member.kind === "shell" ? { shell: member.text } : { prompt: member.text })),
        branches: draft.branches,
        ...(draft.branches === "best" ? { check: draft.check } : {}),
      };
  }
}

/** Whether two drafts are the same, so that nothing is lost if one replaces the other. */
export function isSameDraft(first: StepDraft, second: StepDraft): boolean {
  return JSON.stringify(first) === JSON.stringify(second);
}
