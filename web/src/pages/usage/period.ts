// The period of a usage report. It consists of whole days in UTC, as the server counts them.
export const PRESETS = ["7d", "30d", "90d", "month"] as const;
export type Preset = (typeof PRESETS)[number];
export const DEFAULT_PRESET: Preset = "30d";

/** The first and the last day, `2026-11-19`. Both are included. */
export interface Period {
  from: string;
  to: string;
}

/** The longest period that the server reports. */
export const LONGEST_DAYS = 366;
const DAY_MS = 86_400_000;
const LENGTHS: Record<Exclude<Preset, "month">, number> = { "7d": 7, "30d": 30, "90d": 90 };

const timeOf = (day: string): number => Date.parse(`${day}T00:00:00Z`);

export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

export function addDays(day: string, count: number): string {
  return dayOf(timeOf(day) + count * DAY_MS);
}

/** Whether the text is a day that exists. */
export function isDay(text: string | undefined): text is string {
  return (
    text !== undefined &&
    /^\d{4}-\d{2}-\d{2}$/.test(text) &&
    !Number.isNaN(timeOf(text)) &&
    dayOf(timeOf(text)) === text
  );
}

export function countDays({ from, to }: Period): number {
  return Math.round((timeOf(to) - timeOf(from)) / DAY_MS) + 1;
}

export function isPossible(period: Period): boolean {
  return isDay(period.from) && isDay(period.to) && countDays(period) >= 1 && countDays(period) <= LONGEST_DAYS;
}

export function presetPeriod(preset: Preset, today: string): Period {
  return {
    from: preset === "month" ? `${today.slice(0, 7)}-01` : addDays(today, 1 - LENGTHS[preset]),
    to: today,
  };
}

/** The period to compare with: as many days before it, or for a month the same days of the month before. */
export function previousPeriod(period: Period, preset: Preset | null): Period {
  const to = addDays(period.from, -1);
  if (preset !== "month") {
    return { from: addDays(period.from, -countDays(period)), to };
  }
  const from = `${to.slice(0, 7)}-01`;
  const sameDay = addDays(from, countDays(period) - 1);
  return { from, to: sameDay < to ? sameDay : to };
}

/** The times that the server needs. The end is not included. */
export function boundsOf({ from, to }: Period): { from: string; to: string } {
  return { from: `${from}T00:00:00Z`, to: `${addDays(to, 1)}T00:00:00Z` };
}

/** Divides a period into parts of at most so many days. */
export function splitPeriod(period: Period, days: number): Period[] {
  const parts: Period[] = [];
  for (let from = period.from; from <= period.to; from = addDays(from, days)) {
    const to = addDays(from, days - 1);
    parts.push({ from, to: to < period.to ? to : period.to });
  }
  return parts;
}

const dayAndYear = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  year: "numeric",
  timeZone: "UTC",
});
const dayOnly = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
const weekdayAndDay = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeZone: "UTC" });

export function describePeriod({ from, to }: Period): string {
  return dayAndYear.formatRange(timeOf(from), timeOf(to));
}

/** `19 Nov`, for narrow places. */
export function formatDay(day: string): string {
  return dayOnly.format(timeOf(day));
}

/** With the weekday and the year. */
export function formatFullDay(day: string): string {
  return weekdayAndDay.format(timeOf(day));
}
