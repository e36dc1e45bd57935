// A time relative to now, with the exact time on hover. All of them are updated by one timer.
import { useSyncExternalStore } from "react";

import { formatAge, formatExactTime, formatRelative, tickFor } from "../format";

const TICK_MS = 1000;

let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(tick, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

function tick(): void {
  now = Date.now();
  for (const listener of listeners) {
    listener();
  }
}

/** The present, rounded down to `step` milliseconds: the component renders again only when that changes. */
export function useNow(step = TICK_MS): number {
  return useSyncExternalStore(subscribe, () => Math.floor(now / step) * step);
}

interface TimeProps {
  /** An ISO time. */
  value: string;
  /** `3 min` instead of `3 min ago`. */
  short?: boolean;
  className?: string;
}

export function Time({ value, short = false, className }: TimeProps) {
  const time = new Date(value);
  const age = Math.abs(now - time.getTime());
  const current = new Date(useNow(tickFor(age)));
  const text = short ? formatAge((current.getTime() - time.getTime()) / 1000) : formatRelative(time, current);
  return (
    <time dateTime={value} title={formatExactTime(time)} className={className}>
      {text}
    </time>
  );
}
