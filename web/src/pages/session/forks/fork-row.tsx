// A session of the family: its place in the graph, where it was forked, how it is doing, what it changed and cost.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { Badge } from "@/design/components/badge";
import { Checkbox } from "@/design/components/checkbox";
import { State } from "@/design/components/state";
import { Time } from "@/design/components/time";
import { cn } from "@/design/classes";
import { formatMoney } from "@/design/format";
import { SafeText } from "@/design/text/text";
import { shortLabel } from "../steps/model";
import { describeForkPoint, forkTurn, type GraphRow } from "./family";
import { changedLinesQuery, rememberSession, turnStartsQuery } from "./queries";

const STEP_PX = 20;
/** Deeper forks are drawn at this level, so that titles keep their width. */
const MAX_DRAWN_LEVEL = 8;

interface Props {
  row: GraphRow;
  isCurrent: boolean;
  isSelected: boolean;
  isPicked: boolean;
  /** In a large family, the changed lines are not read. */
  readsChanges: boolean;
  onPick: () => void;
}

export function ForkRow({ row, isCurrent, isSelected, isPicked, readsChanges, onPick }: Props) {
  const { session } = row;
  const parent = session.forked_from?.session_id ?? "";
  const { data: turns } = useQuery({ ...turnStartsQuery(parent), enabled: parent !== "" && row.level > 0 });
  const { data: changed } = useQuery({ ...changedLinesQuery(session.id), enabled: readsChanges });
  const title = session.title ?? "Untitled session";
  const turn = session.forked_from == null ? null : forkTurn(session.forked_from.position, turns);
  return (
    <div
      data-fork={session.id}
      data-selected={isSelected || undefined}
      className="flex min-h-11 items-center gap-2 border-l-2 border-l-transparent pr-4 pl-3 hover:bg-hover data-selected:border-l-accent data-selected:bg-selected"
    >
      <Checkbox aria-label={`Mark ${shortLabel(title)}`} checked={isPicked} onCheckedChange={onPick} />
      <Branches row={row} isCurrent={isCurrent} />
      <Link
        to="/sessions/$sessionId"
        params={{ sessionId: session.id }}
        onClick={() => {
          rememberSession(session);
        }}
        aria-current={isCurrent ? "page" : undefined}
        className="flex min-w-0 flex-1 items-center gap-x-3 self-stretch outline-offset-[-2px] max-md:flex-wrap max-md:content-center max-md:py-1"
      >
        <SafeText limit={300} className="min-w-0 truncate font-medium max-md:basis-full">
          {title}
        </SafeText>
        {isCurrent && <Badge tone="accent">this session</Badge>}
        <span className="shrink-0 text-sm text-muted">
          {row.level > 0 ? describeForkPoint(turn) : session.forked_from == null ? "the original" : ""}
        </span>
        <span className="ml-auto flex shrink-0 items-center gap-3 text-sm text-muted max-md:ml-0">
          {changed !== undefined && (
            <span className="w-24 text-right max-md:w-auto">
              {changed.files === 0 ? (
                <span className="max-md:hidden">no changes</span>
              ) : (
                <>
                  <span className="text-success">+{changed.added}</span>{" "}
                  <span className="text-failed">−{changed.deleted}</span>
                </>
              )}
            </span>
          )}
          <span className="w-16 text-right max-md:w-auto">{formatMoney(session.usage.cost_microusd)}</span>
          <Time value={session.created_at} short className="w-14 text-right max-md:hidden" />
          <State state={session.state} className="w-24 max-md:w-auto" />
        </span>
      </Link>
    </div>
  );
}

const LINE = "absolute border-line-strong";

/** The lines from the parent, and the point of the session. They are as high as the row, whatever it contains. */
function Branches({ row, isCurrent }: { row: GraphRow; isCurrent: boolean }) {
  const level = Math.min(row.level, MAX_DRAWN_LEVEL);
  const x = (at: number): number => 8 + at * STEP_PX;
  return (
    <span aria-hidden className="relative shrink-0 self-stretch" style={{ width: x(level) + 8 }}>
      {row.lines
        .slice(0, level)
        .map((passes, index) =>
          passes ? (
            <span key={index} className={cn(LINE, "inset-y-0 border-l-2")} style={{ left: x(index) - 1 }} />
          ) : null,
        )}
      {level > 0 && (
        <span
          className={cn(LINE, "top-0 h-1/2 rounded-bl-lg border-b-2 border-l-2")}
          style={{ left: x(level - 1) - 1, width: STEP_PX - 3 }}
        />
      )}
      {level > 0 && !row.isLast && (
        <span className={cn(LINE, "inset-y-0 border-l-2")} style={{ left: x(level - 1) - 1 }} />
      )}
      {row.hasForks && <span className={cn(LINE, "top-1/2 bottom-0 border-l-2")} style={{ left: x(level) - 1 }} />}
      <span
        className={cn(
          "absolute top-1/2 size-2.5 -translate-x-1/2 -translate-y-1/2 rounded-full border-2",
          isCurrent ? "border-accent bg-accent" : "border-muted bg-canvas",
        )}
        style={{ left: x(level) }}
      />
    </span>
  );
}
