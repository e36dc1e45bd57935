// Tool calls with their decisions and results, and what happened to them in one word.
import { type LogEvent, objectField, textField, textOf, timeOf } from "./events";

export type CallStatus =
  | "running"
  | "waiting_approval"
  | "waiting_answer"
  | "waiting_result"
  | "ok"
  | "failed"
  | "denied"
  | "interrupted"
  | "unknown"
  | "no_result";

export interface SubagentThread {
  id: string;
  name: string;
  isRunning: boolean;
}

export interface ToolCall {
  use: LogEvent;
  result: LogEvent | null;
  decision: LogEvent | null;
  thread: SubagentThread | null;
  status: CallStatus;
  /** How long it ran. Null if it has not ended or never ran. */
  seconds: number | null;
}

export const CALL_TYPES = new Set(["agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use"]);
export const RESULT_TYPES = new Set(["agent.tool_result", "agent.mcp_tool_result", "user.custom_tool_result"]);

const MAIN_ARGUMENTS = ["command", "file_path", "path", "pattern", "url", "query", "description", "prompt"];
const UNKNOWN = /^(The outcome of this call is unknown|This call has no result: the turn ended before)/;
const INTERRUPTED = /^(The user interrupted|This call has no result: the user)/;

/** The event id of the call that a result or a decision belongs to. */
export function callIdOf(event: LogEvent): string | null {
  return (
    textField(event, "tool_use_id") ?? textField(event, "mcp_tool_use_id") ?? textField(event, "custom_tool_use_id")
  );
}

export function toolName(use: LogEvent): string {
  const name = textField(use, "name") ?? "tool";
  const server = textField(use, "mcp_server_name");
  return server === null ? name : `${server}.${name}`;
}

export function inputOf(call: Pick<ToolCall, "use" | "decision">): Readonly<Record<string, unknown>> {
  return objectField(call.decision, "updated_input") ?? objectField(call.use, "input") ?? {};
}

/** The main argument of a call, in one line. */
export function callLabel(input: Readonly<Record<string, unknown>>): string {
  const questions = input["questions"];
  if (Array.isArray(questions)) {
    return questions
      .map((one: unknown) => textField(one as Readonly<Record<string, unknown>>, "question") ?? "")
      .join("; ");
  }
  for (const name of MAIN_ARGUMENTS) {
    const value = input[name];
    if (typeof value === "string" && value !== "") {
      return value;
    }
  }
  return Object.keys(input).length === 0 ? "" : JSON.stringify(input);
}

interface CallParts {
  use: LogEvent;
  result: LogEvent | null;
  decision: LogEvent | null;
  /** Whether the turn of the call has ended. */
  hasEnded: boolean;
}

export function callStatus({ use, result, decision, hasEnded }: CallParts): CallStatus {
  if (result !== null) {
    const text = textOf(result);
    if (UNKNOWN.test(text)) {
      return "unknown";
    }
    if (INTERRUPTED.test(text)) {
      return "interrupted";
    }
    if (
      decision?.["result"] === "deny" ||
      (use["evaluated_permission"] === "deny" && use["permission"] !== undefined)
    ) {
      return "denied";
    }
    return result["is_error"] === true ? "failed" : "ok";
  }
  if (decision?.["result"] === "deny") {
    return "denied";
  }
  if (hasEnded) {
    return "no_result";
  }
  if (use["question"] === true) {
    return "waiting_answer";
  }
  if (use.type === "agent.custom_tool_use") {
    return "waiting_result";
  }
  return use["evaluated_permission"] === "ask" && decision === null ? "waiting_approval" : "running";
}

/** The time that a person took to decide does not count. */
export function callSeconds(use: LogEvent, result: LogEvent | null, decision: LogEvent | null): number | null {
  const measured = objectField(result, "command")?.["duration_ms"];
  if (typeof measured === "number") {
    return measured / 1000;
  }
  const end = timeOf(result);
  const start = timeOf(decision) ?? timeOf(use);
  return end === null || start === null ? null : Math.max(0, (end - start) / 1000);
}
