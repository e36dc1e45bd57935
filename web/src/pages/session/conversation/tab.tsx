// The conversation of a session: turns, messages and tool calls as they happen, and a message to the agent.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";

import { useActions } from "@/actions/use-actions";
import { meQuery } from "@/api/queries/me";
import type { Session } from "@/api/session-state";
import { copyText } from "@/design/components/copy";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { showToast } from "@/design/components/toast";
import { lazyPart } from "@/frame/lazy-part";

import { eventIdsOf, type LogItem } from "../log/items";
import type { ToolCall } from "../log/tool-calls";
import { useSessionLog } from "../log/use-session-log";
import { useTurns } from "../log/use-turns";
import { ActivityLine } from "./activity-line";
import { Composer } from "./composer";
import { ConversationContext, OpenRowsContext, toggled } from "./context";
import { ForkDialog } from "./fork-dialog";
import { type ForkPoint, forkPoint } from "./fork-point";
import { ConversationList, type ListHandle } from "./list";
import { ConversationSkeleton } from "./skeleton";
import { outputOf } from "./output";
import { useQueue } from "./queue";
import { buildRows, type Row } from "./rows";
import { Timeline } from "./timeline";
import { useDeepLink } from "./use-deep-link";

const OutputPane = lazyPart("The output", () => import("./output-pane"));
const route = getRouteApi("/frame/sessions/$sessionId");

export default function ConversationTab({ session }: { session: Session }) {
  return <Conversation key={session.id} session={session} />;
}

function Conversation({ session }: { session: Session }) {
  const sessionId = session.id;
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { data: me } = useQuery(meQuery);
  const mayOperate = me?.permissions.includes("operate") ?? false;
  const mayApprove = me?.permissions.includes("approve") ?? false;
  const { log, items, previews, isLoaded, error, hasOlder, isLoadingOlder, streamState } = useSessionLog(sessionId);
  const turns = useTurns(sessionId);
  const queue = useQueue(sessionId);
  const rows = useMemo(() => buildRows(items, previews, turns, queue), [items, previews, turns, queue]);
  const list = useRef<ListHandle>(null);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [currentTurn, setCurrentTurn] = useState<string | null>(null);
  const hovered = useRef<string | null>(null);
  const [fork, setFork] = useState<ForkPoint | null>(null);
  // The rows must not be rendered again because an item was added.
  const currentItems = useRef(items);
  useEffect(() => {
    currentItems.current = items;
  }, [items]);
  const [output, setOutput] = useState<ToolCall | null>(null);

  const selected = useMemo(() => {
    const wanted = search.event;
    return wanted === undefined ? undefined : items.find((item) => eventIdsOf(item).includes(wanted));
  }, [items, search.event]);

  const toggle = useCallback((key: string) => {
    setOpen((before) => toggled(before, key));
  }, []);

  // What waits for a decision is open, so that a person can decide right here: the first one only.
  const waiting = items.find(
    (item) =>
      item.kind === "tool" && (item.call.status === "waiting_approval" || item.call.status === "waiting_answer"),
  )?.key;
  const [openedWaiting, setOpenedWaiting] = useState<string | undefined>(undefined);
  if (waiting !== openedWaiting) {
    setOpenedWaiting(waiting);
    setOpen((before) => {
      const next = new Set(before);
      if (openedWaiting !== undefined) {
        next.delete(openedWaiting);
      }
      return waiting === undefined ? next : next.add(waiting);
    });
  }

  const linkTo = useCallback((eventId: string) => {
    const url = new URL(location.href);
    url.search = new URLSearchParams({ event: eventId }).toString();
    return url.href;
  }, []);

  const actions = useMemo(
    () => ({
      sessionId,
      mayOperate,
      mayApprove,
      toggle,
      copyLink: (event: { id: string }) => {
        void copyText(linkTo(event.id)).then((isCopied) => {
          if (isCopied) {
            showToast({ title: "Link to the event copied", timeout: 2_500 });
          }
        });
      },
      fork: (item: LogItem) => {
        setFork(forkPoint(currentItems.current, item));
      },
      showOutput: setOutput,
    }),
    [sessionId, mayOperate, mayApprove, toggle, linkTo],
  );

  function select(item: LogItem | undefined): void {
    if (item !== undefined) {
      void navigate({ search: ({ turn, ...before }) => ({ ...before, event: item.event.id }), replace: true });
      list.current?.scrollTo(item.key);
    }
  }

  const { event: wantedEvent, turn: wantedTurn } = search;
  const { missing, follow } = useDeepLink({
    event: wantedEvent,
    turn: wantedTurn,
    turns,
    log,
    onShow: (key) => {
      list.current?.scrollTo(key);
    },
  });

  const lastItem = items.findLast((item) => item.kind !== "user" || !item.isQueued);
  const isCallRunning =
    session.activity.state === "running" && lastItem?.kind === "tool" && lastItem.call.status === "running";
  const itemRows = rows.filter((row): row is Extract<Row, { kind: "item" }> => row.kind === "item");
  const selectedIndex = itemRows.findIndex((row) => row.key === selected?.key);
  const target = (): LogItem | undefined =>
    selected ?? itemRows.find((row) => row.key === hovered.current)?.item ?? itemRows.at(-1)?.item;
  const underPointer = (): LogItem | undefined => itemRows.find((row) => row.key === hovered.current)?.item ?? target();
  const turnIndex = turns.findIndex((one) => one.id === (wantedTurn ?? currentTurn));

  function goToTurn(index: number): void {
    const turn = turns[index];
    if (turn !== undefined) {
      follow();
      void navigate({ search: ({ event, ...before }) => ({ ...before, turn: turn.id }), replace: true });
    }
  }

  useActions({
    "session.next-event": () => {
      select(
        itemRows[Math.min(selectedIndex === -1 ? itemRows.length - 1 : selectedIndex + 1, itemRows.length - 1)]?.item,
      );
    },
    "session.previous-event": () => {
      select(itemRows[selectedIndex === -1 ? itemRows.length - 1 : Math.max(selectedIndex - 1, 0)]?.item);
    },
    "session.newest": () => list.current?.scrollToEnd(),
    ...(turns.length > 0
      ? {
          "session.next-turn": () => {
            goToTurn(Math.min(turnIndex + 1, turns.length - 1));
          },
          "session.previous-turn": () => {
            goToTurn(turnIndex === -1 ? turns.length - 1 : Math.max(turnIndex - 1, 0));
          },
        }
      : {}),
    ...(selected !== undefined
      ? {
          "session.open-event": () => {
            toggle(selected.key);
          },
        }
      : {}),
    ...(items.length > 0
      ? {
          "session.copy-event-link": () => {
            const item = underPointer();
            if (item !== undefined) {
              actions.copyLink(item.event);
            }
          },
          "session.show-output": () => {
            const item = underPointer();
            if (item?.kind === "tool" && outputOf(item.call) !== "") {
              setOutput(item.call);
            }
          },
          ...(mayOperate
            ? {
                "session.fork-here": () => {
                  const item = underPointer();
                  if (item !== undefined) {
                    actions.fork(item);
                  }
                },
              }
            : {}),
        }
      : {}),
  });

  return (
    <ConversationContext value={actions}>
      <OpenRowsContext value={open}>
        <div className="flex min-h-0 flex-1">
          <Timeline
            turns={turns}
            current={wantedTurn ?? currentTurn}
            onSelect={(turn) => {
              goToTurn(turns.indexOf(turn));
            }}
          />
          <div className="flex min-w-0 flex-1 flex-col">
            {error !== null && (
              <ErrorPanel
                className="m-4"
                title={isLoaded ? "Earlier events could not be loaded" : "The conversation could not be loaded"}
                error={error}
                onRetry={() => void (isLoaded ? log.loadOlder() : log.load())}
              />
            )}
            {missing !== null && (
              <p role="status" className="border-b bg-waiting-soft px-4 py-2 md:px-8">
                The event of this link is not in this session.
              </p>
            )}
            {!isLoaded && error === null && <ConversationSkeleton />}
            {isLoaded && rows.length === 0 && (
              <div className="flex-1">
                <EmptyState title="Nothing was said yet" command={`footplate send ${sessionId} "…"`}>
                  Describe the task below. The agent begins as soon as you send it.
                </EmptyState>
              </div>
            )}
            {isLoaded && rows.length > 0 && (
              <ConversationList
                rows={rows}
                log={log}
                selected={selected?.key ?? null}
                markedTurn={wantedEvent === undefined ? (wantedTurn ?? null) : null}
                hasOlder={hasOlder}
                isLoadingOlder={isLoadingOlder}
                handle={list}
                onTurn={setCurrentTurn}
                onHover={(key) => {
                  hovered.current = key;
                }}
                footer={
                  <ActivityLine
                    session={session}
                    isShown={previews.length > 0 || isCallRunning}
                    streamState={streamState}
                  />
                }
              />
            )}
            <Composer session={session} mayOperate={mayOperate} />
          </div>
        </div>
        {fork !== null && (
          <ForkDialog
            session={session}
            point={fork}
            onClose={() => {
              setFork(null);
            }}
          />
        )}
        {output !== null && (
          <Suspense>
            <OutputPane
              call={output}
              onClose={() => {
                setOutput(null);
              }}
            />
          </Suspense>
        )}
      </OpenRowsContext>
    </ConversationContext>
  );
}
