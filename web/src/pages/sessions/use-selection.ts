// The cursor and the selected sessions. The cursor is in the address, a moment after it was moved.
import { useEffect, useEffectEvent, useRef, useState } from "react";

import type { SessionRow } from "./rows";

/** Browsers limit how often the address may change. */
const ADDRESS_MS = 300;

export type Selection = ReadonlyMap<string, SessionRow>;

interface Options {
  rows: () => readonly SessionRow[];
  indexOf: (id: string) => number;
  initialCursor: string | undefined;
  onCursor: (id: string) => void;
}

export function useSelection({ rows, indexOf, initialCursor, onCursor }: Options) {
  const [cursorId, setCursorId] = useState(initialCursor ?? null);
  const [selected, setSelected] = useState<Selection>(new Map());
  /** From where a range is selected. */
  const anchor = useRef<string | null>(null);
  const isMoved = useRef(false);
  const report = useEffectEvent(onCursor);
  useEffect(() => {
    if (cursorId === null || !isMoved.current) {
      return undefined;
    }
    const timer = setTimeout(() => {
      report(cursorId);
    }, ADDRESS_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [cursorId]);

  function move(step: number): void {
    const all = rows();
    const index = cursorId === null ? -1 : indexOf(cursorId);
    const next = all[index < 0 ? 0 : Math.min(Math.max(index + step, 0), all.length - 1)];
    if (next !== undefined) {
      isMoved.current = true;
      setCursorId(next.id);
    }
  }

  function toggle(index: number, isRange = false): void {
    const all = rows();
    const row = all[index];
    if (row === undefined) {
      return;
    }
    const start = anchor.current === null ? -1 : indexOf(anchor.current);
    setSelected((before) => {
      const after = new Map(before);
      if (isRange && start >= 0) {
        for (const one of all.slice(Math.min(start, index), Math.max(start, index) + 1)) {
          after.set(one.id, one);
        }
      } else if (!after.delete(row.id)) {
        after.set(row.id, row);
      }
      return after;
    });
    anchor.current = row.id;
    isMoved.current = true;
    setCursorId(row.id);
  }

  return {
    cursorId,
    selected,
    move,
    toggle,
    clear: () => {
      setSelected(new Map());
      anchor.current = null;
    },
    deselect: (rows: readonly SessionRow[]) => {
      setSelected((before) => {
        const after = new Map(before);
        for (const row of rows) {
          after.delete(row.id);
        }
        return after;
      });
    },
  };
}
