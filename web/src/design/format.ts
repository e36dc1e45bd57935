// Formats times, durations, tokens and money, the same way everywhere.
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `12 s`, `3 min`, `1 h 20 min`, `2 d`. Below ten seconds with one decimal. */
export function formatDuration(seconds: number): string {
  const value = Math.max(0, seconds);
  if (value < 1) {
    return `${Math.round(value * 1000)} ms`;
  }
  if (value < 10) {
    return `${String(Math.floor(value * 10) / 10)} s`;
  }
  if (value < MINUTE) {
    return `${Math.floor(value)} s`;
  }
  if (value < HOUR) {
    return `${Math.floor(value / MINUTE)} min`;
  }
  if (value < DAY) {
    const minutes = Math.floor((value % HOUR) / MINUTE);
    return minutes === 0 ? `${Math.floor(value / HOUR)} h` : `${Math.floor(value / HOUR)} h ${minutes} min`;
  }
  return `${Math.floor(value / DAY)} d`;
}

/** `just now`, `3 min ago`, `in 2 h`. */
export function formatRelative(time: Date, now: Date): string {
  const seconds = (now.getTime() - time.getTime()) / 1000;
  if (Math.abs(seconds) < 5) {
    return "just now";
  }
  const age = formatAge(Math.abs(seconds));
  return seconds > 0 ? `${age} ago` : `in ${age}`;
}

/** A time span with one unit, for narrow columns: `12 s`, `3 min`, `1 h`, `2 d`. */
export function formatAge(seconds: number): string {
  const value = Math.max(0, Math.floor(seconds));
  if (value < MINUTE) {
    return `${value} s`;
  }
  if (value < HOUR) {
    return `${Math.floor(value / MINUTE)} min`;
  }
  return value < DAY ? `${Math.floor(value / HOUR)} h` : `${Math.floor(value / DAY)} d`;
}

const SLOW_TICK_MS = 30_000;

/** How often a time is shown anew. The present is rounded down to it, which must not bring the seconds back. */
export function tickFor(ageMs: number): number {
  return ageMs < MINUTE * 1000 + SLOW_TICK_MS ? 1000 : SLOW_TICK_MS;
}

const exactTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clockTime = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

export function formatExactTime(time: Date): string {
  return exactTime.format(time);
}

/** `14:02`, for reasons such as "waiting since 14:02". */
export function formatClock(time: Date): string {
  return clockTime.format(time);
}

/** `950`, `12.3k`, `4.1M`. */
export function formatTokens(count: number): string {
  if (count < 1000) {
    return String(count);
  }
  for (const [size, unit] of [
    [1_000_000_000, "B"],
    [1_000_000, "M"],
    [1000, "k"],
  ] as const) {
    const scaled = Math.floor((count / size) * 10) / 10;
    if (scaled >= 1) {
      return `${scaled >= 100 ? String(Math.floor(scaled)) : String(scaled)}${unit}`;
    }
  }
  return String(count);
}

/** Dollars from millionths: `$0.42`, `$0.0031`, `$1,204.50`. Null is an unknown price: `–`. */
export function formatMoney(microusd: number | null | undefined): string {
  if (microusd === null || microusd === undefined) {
    return "–";
  }
  const dollars = microusd / 1_000_000;
  if (dollars !== 0 && Math.abs(dollars) < 0.01) {
    return dollars < 0.0001 ? "< $0.0001" : `$${dollars.toFixed(4)}`;
  }
  return `$${dollars.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) {
    return `${bytes} B`;
  }
  const units = ["KB", "MB", "GB", "TB"] as const;
  let value = bytes / 1024;
  let index = 0;
  while (value >= 1024 && index < units.length - 1) {
    value /= 1024;
    index += 1;
  }
  return `${value < 10 ? value.toFixed(1) : String(Math.round(value))} ${units[index] ?? "TB"}`;
}
