// The rows of the conversation, of which only those on the screen exist. It stays at the end only if it was there.
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { type Ref, useEffect, useImperativeHandle, useRef, useState } from "react";

import type { SessionLog } from "../log/session-log";
import { PreviewRow } from "./preview-row";
import { RowFrame } from "./row-frame";
import { estimateHeight, type Row } from "./rows";
import { TurnHeader } from "./turn-header";

const AT_END = 60;
const LOAD_OLDER_AT = 400;

export interface ListHandle {
  scrollTo: (key: string) => void;
  scrollToEnd: () => void;
}

interface Props {
  rows: readonly Row[];
  log: SessionLog;
  selected: string | null;
  markedTurn: string | null;
  hasOlder: boolean;
  isLoadingOlder: boolean;
  handle: Ref<ListHandle>;
  /** The turn that is at the top of the screen. */
  onTurn: (id: string | null) => void;
  /** The row under the pointer, for keys that act on it. */
  onHover: (key: string | null) => void;
  /** After the last row. */
  footer: React.ReactNode;
}

export function ConversationList(props: Props) {
  const { rows, log, selected, markedTurn, hasOlder, isLoadingOlder, handle, onTurn, onHover, footer } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const [hasNew, setHasNew] = useState(false);
  // oxlint-disable-next-line react/incompatible-library -- the React compiler is not used
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => estimateHeight(rows[index]),
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 6,
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: AT_END,
    paddingEnd: 8,
  });

  function goToEnd(): void {
    isSticky.current = true;
    list.scrollToEnd();
  }

  useImperativeHandle(handle, () => ({
    scrollTo: (key) => {
      const index = rows.findIndex((row) => row.key === key);
      if (index >= 0) {
        isSticky.current = false;
        list.scrollToIndex(index, { align: "center" });
      }
    },
    scrollToEnd: goToEnd,
  }));

  // Opens at the end, and stays there while what is above it grows, unless the person scrolls away.
  const content = useRef<HTMLDivElement>(null);
  const isSticky = useRef(selected === null && markedTurn === null);
  const lastTop = useRef(0);
  useEffect(() => {
    const box = scroller.current;
    const inner = content.current;
    if (box === null || inner === null) {
      return undefined;
    }
    const stick = (): void => {
      if (isSticky.current) {
        box.scrollTop = box.scrollHeight;
      }
    };
    const observer = new ResizeObserver(stick);
    observer.observe(inner);
    observer.observe(box);
    return () => {
      observer.disconnect();
    };
  }, []);

  const visible = list.getVirtualItems();
  const top = list.scrollOffset ?? 0;
  const first = visible.find((item) => item.end > top + 8);
  const firstRow = first === undefined ? undefined : rows[first.index];
  const turnId =
    firstRow?.kind === "turn" ? firstRow.turn.id : firstRow?.kind === "item" ? (firstRow.turn?.id ?? null) : null;
  useEffect(() => {
    onTurn(turnId);
  }, [turnId, onTurn]);

  const lastKey = rows.at(-1)?.key ?? null;
  const [seenKey, setSeenKey] = useState(lastKey);
  if (lastKey !== seenKey) {
    setSeenKey(lastKey);
    if (!isAtEnd) {
      setHasNew(true);
    }
  }

  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={scroller}
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a box that scrolls must be reachable by keyboard
        tabIndex={0}
        role="log"
        aria-label="Conversation"
        aria-live="off"
        data-testid="conversation"
        className="h-full overflow-x-hidden overflow-y-auto px-4 outline-offset-[-2px] [overflow-anchor:none] md:px-8"
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          const atEnd = scrollHeight - scrollTop - clientHeight <= AT_END;
          if (atEnd || scrollTop < lastTop.current) {
            isSticky.current = atEnd;
          }
          lastTop.current = scrollTop;
          setAtEnd(atEnd);
          if (atEnd) {
            setHasNew(false);
          }
          if (scrollTop < LOAD_OLDER_AT && hasOlder && !isLoadingOlder) {
            void log.loadOlder();
          }
        }}
        onPointerOver={(event) => {
          const row = (event.target as Element).closest("[data-key]");
          onHover(row?.getAttribute("data-key") ?? null);
        }}
        onPointerLeave={() => {
          onHover(null);
        }}
      >
        <div ref={content}>
          <div className="relative mx-auto max-w-[52rem]" style={{ height: list.getTotalSize() }}>
            {visible.map(({ index, start, key }) => {
              const row = rows[index];
              return row === undefined ? null : (
                <div
                  key={key}
                  ref={list.measureElement}
                  data-index={index}
                  data-key={row.key}
                  className="absolute inset-x-0 top-0"
                  style={{ transform: `translateY(${start}px)` }}
                >
                  {row.kind === "turn" && <TurnHeader turn={row.turn} isMarked={row.turn.id === markedTurn} />}
                  {row.kind === "item" && <RowFrame item={row.item} isSelected={row.key === selected} />}
                  {row.kind === "preview" && <PreviewRow preview={row.preview} log={log} />}
                </div>
              );
            })}
          </div>
          <div className="mx-auto max-w-[52rem] pb-2">{footer}</div>
        </div>
      </div>
      {isLoadingOlder && (
        <p
          role="status"
          className="absolute top-2 left-1/2 -translate-x-1/2 rounded-full border bg-raised px-3 py-1 text-sm text-muted"
        >
          Loading earlier events
        </p>
      )}
      {!isAtEnd && (
        <button
          type="button"
          className="absolute bottom-3 left-1/2 flex h-8 -translate-x-1/2 items-center gap-1.5 rounded-full border border-line-strong bg-raised px-3 text-sm shadow-popup hover:bg-hover max-md:h-10"
          onClick={goToEnd}
        >
          <ArrowDown aria-hidden className="size-4" />
          {hasNew ? "New below" : "To the end"}
        </button>
      )}
    </div>
  );
}
