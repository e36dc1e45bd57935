// A session below another one: state, title, what it does, tokens and cost; its own children nested below it.
import { Link } from "@tanstack/react-router";
import { Check, ChevronRight, X } from "lucide-react";
import type { ReactNode } from "react";

import { type Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { Checkbox } from "@/design/components/checkbox";
import { State } from "@/design/components/state";
import { Time } from "@/design/components/time";
import { cn } from "@/design/classes";
import { formatMoney, formatTokens } from "@/design/format";
import { SafeText } from "@/design/text/text";
import { shortLabel } from "../steps/model";
import { activityText, hasEnded } from "./tree";

/** The indent of a level, and of what has no fold button. */
const INDENT_PX = 20;

interface Props {
  session: Session;
  level: number;
  isSelected: boolean;
  isChosen: boolean;
  isPicked: boolean;
  /** Null: nothing to fold. */
  isFolded: boolean | null;
  onFold: () => void;
  onPick: () => void;
  /** Null: it cannot be cancelled. */
  onCancel: (() => void) | null;
}

export function SessionRow(props: Props) {
  const { session, level, isSelected, isChosen, isPicked, isFolded, onFold, onPick, onCancel } = props;
  const title = session.title ?? "Untitled session";
  const label = shortLabel(title);
  const tokens = session.usage.input_tokens + session.usage.output_tokens;
  return (
    <div
      data-child={session.id}
      data-selected={isSelected || undefined}
      className="flex min-h-9 items-center gap-2 border-b border-l-2 border-l-transparent pr-2 hover:bg-hover data-selected:border-l-accent data-selected:bg-selected max-md:min-h-14"
      style={{ paddingLeft: 12 + level * INDENT_PX }}
    >
      <FoldButton title={label} isFolded={isFolded} onFold={onFold} />
      <Checkbox aria-label={`Mark ${label}`} checked={isPicked} onCheckedChange={onPick} />
      <Link
        to="/sessions/$sessionId"
        params={{ sessionId: session.id }}
        className="flex min-w-0 flex-1 items-center gap-x-3 self-stretch outline-offset-[-2px] max-md:flex-wrap max-md:py-2"
      >
        <State state={session.state} className="w-24 max-md:w-auto" />
        <SafeText limit={300} className="max-w-[50%] truncate font-medium max-md:max-w-none max-md:flex-1">
          {title}
        </SafeText>
        {isChosen && (
          <span className="inline-flex shrink-0 items-center gap-1 text-sm font-medium text-success">
            <Check aria-hidden className="size-4" /> taken over
          </span>
        )}
        <SafeText limit={300} className="min-w-0 flex-1 truncate text-muted max-md:basis-full">
          {activityText(session)}
        </SafeText>
        <Figures>
          <span className="w-20 text-right max-lg:hidden">{tokens === 0 ? "" : `${formatTokens(tokens)} tokens`}</span>
          <span className="w-16 text-right max-md:hidden">{formatMoney(session.usage.cost_microusd)}</span>
          <Time value={session.created_at} short className="w-14 text-right max-md:hidden" />
        </Figures>
      </Link>
      <span className="w-8 shrink-0">
        {onCancel !== null && !hasEnded(session) && (
          <Button variant="quiet" size="icon" aria-label={`Cancel ${label}`} title="Cancel" onClick={onCancel}>
            <X />
          </Button>
        )}
      </span>
    </div>
  );
}

function Figures({ children }: { children: ReactNode }) {
  return <span className="flex shrink-0 gap-3 text-sm text-muted">{children}</span>;
}

function FoldButton({ title, isFolded, onFold }: { title: string; isFolded: boolean | null; onFold: () => void }) {
  if (isFolded === null) {
    return <span className="w-6 shrink-0" />;
  }
  return (
    <button
      type="button"
      aria-expanded={!isFolded}
      aria-label={`${isFolded ? "Unfold" : "Fold"} ${title}`}
      onClick={onFold}
      className="flex size-6 shrink-0 items-center justify-center rounded-sm text-muted hover:bg-hover hover:text-text"
    >
      <ChevronRight aria-hidden className={cn("size-4 transition-transform", !isFolded && "rotate-90")} />
    </button>
  );
}
