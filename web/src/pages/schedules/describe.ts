// What the fields of a schedule mean, in words.
import type { OverlapPolicy, Schedule } from "@/api/queries/schedules";

import { describeCron } from "./cron-words";

export const OVERLAP: Record<OverlapPolicy, { title: string; text: string }> = {
  allow_all: { title: "Start anyway", text: "The new session starts beside the earlier one." },
  skip: { title: "Skip the run", text: "The run is recorded as skipped." },
  buffer_one: {
    title: "Start afterwards",
    text: "One run starts when the earlier session has finished. Further times until then are skipped.",
  },
  cancel_other: {
    title: "Cancel the earlier session",
    text: "The earlier session ends as cancelled, and the new one starts.",
  },
};

/** The times in words, or the expression itself. */
export function describeTimes(schedule: Schedule): string {
  const { schedule: cron } = schedule;
  return cron === null ? "Only on request" : (describeCron(cron.expression) ?? cron.expression);
}

/** Why it is paused. Null: it is not. */
export function describePause(schedule: Schedule): string | null {
  if (schedule.status !== "paused") {
    return null;
  }
  const error = schedule.paused_reason?.["error"];
  if (typeof error === "object" && error !== null && "message" in error && typeof error.message === "string") {
    return error.message;
  }
  return "A member paused it.";
}

/** The next time at which it starts a session. Null: there is none. */
export function nextRunOf(schedule: Schedule): string | null {
  const isOff = schedule.status === "paused" || schedule.archived_at !== null;
  return isOff ? null : (schedule.schedule?.upcoming_runs_at[0] ?? null);
}

/** `Mon, 23 Nov, 09:00`, as the clocks in the time zone show it. */
export function formatInZone(time: string, timezone: string): string {
  const format: Intl.DateTimeFormatOptions = {
    weekday: "short",
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  };
  try {
    return new Intl.DateTimeFormat("en-GB", { ...format, timeZone: timezone }).format(new Date(time));
  } catch {
    // The server knows a time zone that this browser does not.
    return `${new Intl.DateTimeFormat("en-GB", { ...format, timeZone: "UTC" }).format(new Date(time))} UTC`;
  }
}

const MINUTE = 60;
const UNITS: readonly [number, string][] = [
  [24 * 60 * MINUTE, "day"],
  [60 * MINUTE, "hour"],
  [MINUTE, "minute"],
  [1, "second"],
];

/** `10 minutes`, `90 seconds`: in the largest unit that fits. */
export function formatSeconds(seconds: number): string {
  const [size, unit] = UNITS.find(([one]) => seconds >= one && seconds % one === 0) ?? [1, "second"];
  const count = seconds / size;
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
