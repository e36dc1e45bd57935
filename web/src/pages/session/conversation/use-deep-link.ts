// A link to an event or a turn: loads the log up to it, and shows it.
import { useEffect, useEffectEvent, useRef, useState } from "react";

import { eventIdsOf } from "../log/items";
import type { SessionLog } from "../log/session-log";
import type { Turn } from "../log/turns";

interface Link {
  event: string | undefined;
  turn: string | undefined;
  turns: readonly Turn[];
  log: SessionLog;
  /** Scrolls to the row. */
  onShow: (key: string) => void;
}

/** Returns the event of the link if the session does not have it, and a function that follows the next link in any case. */
export function useDeepLink({ event, turn, turns, log, onShow }: Link): { missing: string | null; follow: () => void } {
  const position = turn === undefined ? undefined : turns.find((one) => one.id === turn)?.firstPosition;
  const [missing, setMissing] = useState<string | null>(null);
  const shown = useRef<string | null>(null);
  const show = useEffectEvent(onShow);
  useEffect(() => {
    const target = event ?? (position === undefined ? undefined : turn);
    if (target === undefined || shown.current === target) {
      return undefined;
    }
    let isCurrent = true;
    const isReached = (): boolean =>
      event === undefined
        ? (log.events.firstPosition ?? Number.POSITIVE_INFINITY) <= (position ?? 0)
        : log.events.has(event);
    void log.loadUntil(isReached).then((isFound) => {
      if (!isCurrent) {
        return;
      }
      shown.current = target;
      setMissing(isFound || event === undefined ? null : event);
      const item = log.getSnapshot().items.find((one) => eventIdsOf(one).includes(target));
      // After the rows of the pages were rendered.
      requestAnimationFrame(() => {
        show(item?.key ?? target);
      });
    });
    return () => {
      isCurrent = false;
    };
  }, [log, event, turn, position]);
  return {
    missing,
    follow: () => {
      shown.current = null;
    },
  };
}
