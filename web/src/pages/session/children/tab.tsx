// Children: the subagents and sessions that a session started, as a tree, with what each does, costs and came to.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Bot, ChevronRight, Columns2, Network } from "lucide-react";
import { useState } from "react";

import { useActions } from "@/actions/use-actions";
import type { Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { cn } from "@/design/classes";
import { formatMoney, formatTokens } from "@/design/format";
import { SafeText } from "@/design/text/text";
import { useListKeys } from "@/frame/use-list-keys";
import { useRefusal } from "../steps/permission";
import { CancelDialog } from "./cancel";
import { CompareButton, usePicked } from "./compare";
import { totalUsageQuery } from "./queries";
import { SessionRow } from "./session-row";
import { type ChildGroup, describeGroup, groupTitle, hasEnded, type Thread } from "./tree";
import { type TreeRow, useTree } from "./use-tree";

const route = getRouteApi("/frame/sessions/$sessionId");

export default function ChildrenTab({ session }: { session: Session }) {
  const { thread: wanted } = route.useSearch();
  const navigate = useNavigate();
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const [selectedKey, setSelected] = useState<string | undefined>(wanted);
  const [cancelled, setCancelled] = useState<Session | null>(null);
  const tree = useTree(session, folded, unfolded);
  const { data: total } = useQuery(totalUsageQuery(session.id));
  const picked = usePicked();
  // An ended parent does not prevent that a child is cancelled; only the role does.
  const mayNot = useRefusal({ ...session, end: null, archived_at: null });
  const selected = tree.rows.find((row) => row.key === selectedKey);

  function fold(row: TreeRow): void {
    const isUnknown = row.kind === "session" && row.hasChildren === null;
    if (isUnknown) {
      setUnfolded(new Set(unfolded).add(row.key));
      return;
    }
    const next = new Set(folded);
    if (!next.delete(row.key)) {
      next.add(row.key);
    }
    setFolded(next);
  }
  function open(row: TreeRow): void {
    if (row.kind === "session") {
      void navigate({ to: "/sessions/$sessionId", params: { sessionId: row.session.id } });
    } else if (row.kind === "subagent") {
      void navigate({
        to: "/sessions/$sessionId",
        params: { sessionId: session.id },
        search: { tab: "conversation", thread: row.thread.id },
      });
    } else {
      fold(row);
    }
  }
  useListKeys({
    next: "session.next-child",
    previous: "session.previous-child",
    open: "session.open-child",
    count: tree.rows.length,
    selected: tree.rows.findIndex((row) => row.key === selectedKey),
    onSelect: (index) => {
      const row = tree.rows[index];
      setSelected(row?.key);
      document.querySelector(`[data-child="${CSS.escape(row?.key ?? "")}"]`)?.scrollIntoView({ block: "nearest" });
    },
    onOpen: (index) => {
      const row = tree.rows[index];
      if (row !== undefined) {
        open(row);
      }
    },
  });
  const chosen = selected?.kind === "session" ? selected.session : null;
  useActions({
    ...(selected === undefined || selected.kind === "subagent"
      ? {}
      : {
          "session.fold-child": () => {
            fold(selected);
          },
        }),
    ...(chosen === null
      ? {}
      : {
          "session.pick-child": () => {
            picked.pick(chosen.id);
          },
        }),
    ...(chosen === null || mayNot !== null || hasEnded(chosen)
      ? {}
      : {
          "session.cancel-child": () => {
            setCancelled(chosen);
          },
        }),
    ...(picked.ids.length === 2
      ? {
          "session.compare-children": () => {
            picked.compare();
          },
        }
      : {}),
  });

  if (tree.isPending) {
    return <SkeletonRows />;
  }
  if (tree.error !== null && tree.rows.length === 0) {
    return (
      <ErrorPanel
        className="m-4"
        title="The child sessions could not be loaded"
        error={tree.error}
        onRetry={() => void tree.refetch()}
      />
    );
  }
  if (tree.rows.length === 0) {
    return (
      <EmptyState title="No child sessions" command="footplate queue run pipeline.yaml">
        A parallel step or the agent can start sessions of their own, such as several attempts at one task. They appear
        here as they start.
      </EmptyState>
    );
  }
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex min-h-12 flex-wrap items-center gap-3 border-b px-4 py-2">
        <p className="min-w-0 flex-1 text-muted">
          {total !== undefined && (
            <>
              <span className="font-medium text-text">
                {total.sessions === 1 ? "1 session" : `${total.sessions} sessions`}
              </span>{" "}
              with this one{total.usage.cost_microusd == null ? "" : `, ${formatMoney(total.usage.cost_microusd)}`}
              {`, ${formatTokens(total.usage.input_tokens + total.usage.output_tokens)} tokens`}
            </>
          )}
        </p>
        <CompareButton
          count={picked.ids.length}
          onCompare={() => {
            picked.compare();
          }}
        />
      </div>
      <ul aria-label="Children" className="min-h-0 flex-1 overflow-y-auto">
        {tree.rows.map((row) => (
          <li key={row.key} className="[contain-intrinsic-size:auto_37px] [content-visibility:auto]">
            {row.kind === "subagent" && (
              <SubagentRow session={session} thread={row.thread} isSelected={row.key === selectedKey} />
            )}
            {row.kind === "group" && (
              <GroupRow
                group={row.group}
                level={row.level}
                isFolded={folded.has(row.key)}
                isSelected={row.key === selectedKey}
                onFold={() => {
                  fold(row);
                }}
                onCompare={(ids) => {
                  picked.compare(ids);
                }}
              />
            )}
            {row.kind === "session" && (
              <SessionRow
                session={row.session}
                level={row.level}
                isSelected={row.key === selectedKey}
                isChosen={row.isChosen}
                isPicked={picked.ids.includes(row.key)}
                isFolded={row.hasChildren === false ? null : folded.has(row.key) || row.hasChildren === null}
                onFold={() => {
                  fold(row);
                }}
                onPick={() => {
                  picked.pick(row.key);
                }}
                onCancel={
                  mayNot === null
                    ? () => {
                        setCancelled(row.session);
                      }
                    : null
                }
              />
            )}
          </li>
        ))}
      </ul>
      {cancelled !== null && (
        <CancelDialog
          session={cancelled}
          onClose={() => {
            setCancelled(null);
          }}
        />
      )}
    </div>
  );
}

interface GroupRowProps {
  group: ChildGroup;
  level: number;
  isFolded: boolean;
  isSelected: boolean;
  onFold: () => void;
  onCompare: (ids: string[]) => void;
}

function GroupRow({ group, level, isFolded, isSelected, onFold, onCompare }: GroupRowProps) {
  const [first, second] = group.members;
  return (
    <div
      data-child={group.id}
      data-selected={isSelected || undefined}
      className="flex min-h-9 items-center gap-2 border-b border-l-2 border-l-transparent bg-surface pr-2 data-selected:border-l-accent data-selected:bg-selected max-md:min-h-11"
      style={{ paddingLeft: 12 + level * 20 }}
    >
      <button
        type="button"
        aria-expanded={!isFolded}
        onClick={onFold}
        className="flex min-w-0 flex-1 items-center gap-2 self-stretch text-left outline-offset-[-2px]"
      >
        <ChevronRight
          aria-hidden
          className={cn("mx-1 size-4 shrink-0 text-muted transition-transform", !isFolded && "rotate-90")}
        />
        <Network aria-hidden className="size-4 shrink-0 text-muted max-md:hidden" />
        <SafeText className="truncate font-medium">{groupTitle(group)}</SafeText>
        <SafeText className="min-w-0 flex-1 truncate text-muted">{describeGroup(group)}</SafeText>
      </button>
      {first !== undefined && second !== undefined && group.members.length === 2 && (
        <Button
          size="sm"
          variant="quiet"
          onClick={() => {
            onCompare([first.id, second.id]);
          }}
        >
          <Columns2 aria-hidden /> Compare both
        </Button>
      )}
    </div>
  );
}

const THREAD_WORDS: Record<Thread["status"], string> = {
  idle: "done",
  running: "running",
  rescheduling: "continues soon",
  terminated: "ended",
};

function SubagentRow({ session, thread, isSelected }: { session: Session; thread: Thread; isSelected: boolean }) {
  return (
    <Link
      to="/sessions/$sessionId"
      params={{ sessionId: session.id }}
      search={{ tab: "conversation", thread: thread.id }}
      data-child={thread.id}
      data-selected={isSelected || undefined}
      className="flex min-h-9 items-center gap-3 border-b border-l-2 border-l-transparent pr-4 pl-3 outline-offset-[-2px] hover:bg-hover data-selected:border-l-accent data-selected:bg-selected max-md:min-h-14"
    >
      <Bot aria-hidden className="mx-1 size-4 shrink-0 text-muted" />
      <span className={cn("w-24 shrink-0 font-medium", thread.status === "running" ? "text-running" : "text-muted")}>
        {THREAD_WORDS[thread.status]}
      </span>
      <SafeText className="min-w-0 flex-1 truncate">{thread.agent.name}</SafeText>
      <span className="shrink-0 text-sm text-muted">subagent</span>
      <span className="w-16 shrink-0 text-right text-sm text-muted max-md:hidden">
        {formatMoney(thread.usage?.cost_microusd)}
      </span>
    </Link>
  );
}
