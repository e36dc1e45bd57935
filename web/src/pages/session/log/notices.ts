// Thin lines between the messages: what happened to the session itself.
import { type LogEvent, objectField, textField, textOf, timeOf } from "./events";

export interface Notice {
  tone: "quiet" | "waiting" | "failed";
  title: string;
  detail: string | null;
  /** Another session that it refers to. */
  sessionId?: string;
}

const LIMITS = /limit|budget|timeout|timed_out/;

/** Returns what a person should know about the event. Null: nothing. */
export function describeNotice(event: LogEvent, events: readonly LogEvent[], index: number): Notice | null {
  switch (event.type) {
    case "session.error":
      return describeError(event);
    case "user.interrupt":
      return textField(event, "session_thread_id") === null
        ? quiet("Interrupted by a person")
        : quiet("A subagent was interrupted by a person");
    case "session.status_rescheduled":
      return events[index - 1]?.type === "session.error" ? null : quiet("Waits for another attempt");
    case "session.status_terminated":
      return quiet(`Session ended: ${textField(event, "outcome") ?? "completed"}`, textField(event, "reason"));
    case "agent.thread_context_compacted":
      return quiet("The model continues with a shortened conversation", "All of it stays in this log.");
    case "session.status_idle":
      return describeOrigin(event);
    case "span.model_request_end":
      return describeLoss(event, events, index);
    case "agent.tool_result":
      return textOf(event).startsWith("The outcome of this call is unknown") ? workerLost(event, events, index) : null;
    case "project.setup_started":
      return hasLater(events, index, "project.setup_ended") ? null : quiet("The project is being set up");
    case "project.setup_ended":
      return (textField(event, "status") ?? "completed") !== "completed"
        ? { tone: "failed", title: "The setup of the project failed", detail: textField(event, "error") }
        : quiet("The project was set up");
    case "step.playback":
      return describePlayback(event);
    default:
      return null;
  }
}

function quiet(title: string, detail: string | null = null): Notice {
  return { tone: "quiet", title, detail };
}

function describeError(event: LogEvent): Notice {
  const error = objectField(event, "error");
  const type = textField(error, "type") ?? "";
  const message = textField(error, "message") ?? "The turn failed.";
  if (objectField(error, "retry_status")?.["type"] === "retrying") {
    return { tone: "waiting", title: "A problem, another attempt follows", detail: message };
  }
  return LIMITS.test(type)
    ? { tone: "waiting", title: "Stopped at a limit", detail: message }
    : { tone: "failed", title: "The turn failed", detail: message };
}

function describeOrigin(event: LogEvent): Notice | null {
  const fork = objectField(event, "forked_from");
  const sessionId = textField(fork, "session_id");
  if (sessionId !== null) {
    return { ...quiet("Forked from another session here"), sessionId };
  }
  return objectField(event, "imported_from") === null ? null : quiet("Imported from a transcript up to here");
}

/** A model request that ended without an error of its own was lost with its worker, if the turn then went on. */
function describeLoss(event: LogEvent, events: readonly LogEvent[], index: number): Notice | null {
  if (event["is_error"] !== true) {
    return null;
  }
  const next = events[index + 1];
  return next?.type === "span.model_request_start" ? workerLost(event, events, index) : null;
}

function workerLost(event: LogEvent, events: readonly LogEvent[], index: number): Notice {
  const before = timeOf(events[index - 1]);
  const now = timeOf(event);
  const seconds = before === null || now === null ? null : Math.round((now - before) / 1000);
  const delay = seconds === null || seconds < 1 ? "" : ` after ${seconds} s`;
  return quiet(`Worker lost, continued on another${delay}`);
}

function describePlayback(event: LogEvent): Notice | null {
  if (event["playing"] === false && Number(event["next_steps"] ?? 0) > 0) {
    return quiet("Runs the next step, then pauses again");
  }
  if (event["playing"] !== false) {
    return event["playing"] === true ? quiet("Playing again") : null;
  }
  return textField(event, "pause_reason") === "step_failed"
    ? { tone: "waiting", title: "Paused, because a step failed", detail: null }
    : quiet("Paused");
}

function hasLater(events: readonly LogEvent[], index: number, type: string): boolean {
  return events.some((event, at) => at > index && event.type === type);
}
