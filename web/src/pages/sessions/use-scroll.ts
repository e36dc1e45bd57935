// The position of a scrolled list: it stays where it is when rows change, and follows the cursor.
import { type KeyboardEvent, type RefObject, useLayoutEffect, useRef } from "react";

import type { RowPages } from "./row-pages";

/** Keeps the first visible row where it is when rows appear or disappear before it, and restores where the list was. */
export function useAnchor(pages: RowPages, scroller: RefObject<HTMLDivElement | null>, height: number): void {
  const anchor = useRef<{ id: string; index: number } | null>(null);
  const { rows } = pages.getSnapshot();
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) {
      return undefined;
    }
    if (pages.scrollTop > 0) {
      element.scrollTop = pages.scrollTop;
    }
    function remember(): void {
      const top = scroller.current?.scrollTop ?? 0;
      pages.scrollTop = top;
      const index = Math.floor(top / height);
      const row = pages.getSnapshot().rows[index];
      anchor.current = top <= 0 || row === undefined ? null : { id: row.id, index };
    }
    remember();
    element.addEventListener("scroll", remember, { passive: true });
    return () => {
      element.removeEventListener("scroll", remember);
    };
  }, [pages, scroller, height]);
  useLayoutEffect(() => {
    const index = anchor.current === null ? -1 : pages.indexOf(anchor.current.id);
    if (anchor.current === null || index < 0 || scroller.current === null || index === anchor.current.index) {
      return;
    }
    // Relative to where the list is now: it may have been scrolled since the anchor was set.
    scroller.current.scrollTop += (index - anchor.current.index) * height;
    anchor.current.index = index;
  }, [rows, pages, scroller, height]);
}

export function useCursorInView(
  scroller: RefObject<HTMLDivElement | null>,
  index: number,
  cursorId: string | null,
  height: number,
): void {
  const shown = useRef<string | null>(cursorId);
  useLayoutEffect(() => {
    const element = scroller.current;
    // Only when the cursor was moved, not when its row was.
    if (element === null || index < 0 || shown.current === cursorId) {
      return;
    }
    shown.current = cursorId;
    if (index * height < element.scrollTop) {
      element.scrollTop = index * height;
    } else if ((index + 1) * height > element.scrollTop + element.clientHeight) {
      element.scrollTop = (index + 1) * height - element.clientHeight;
    }
  }, [scroller, index, cursorId, height]);
}

/** Moves the cursor when the list has the focus, as the arrow keys do in a list box. */
export function moveWithArrows(event: KeyboardEvent, onMove: (step: number) => void): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step !== undefined && !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    onMove(step);
  }
}
