// One entry of the audit trail, and its details when it is open.
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

import type { AuditEntry } from "@/api/queries/policy";
import { cn } from "@/design/classes";
import { Badge } from "@/design/components/badge";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";

import { describeDecider, describeOutcome, describeReason, describeSubject, toneOf } from "./describe";
import { EntryDetails } from "./entry-details";

/** The columns of the header and of the rows. */
export const AUDIT_COLUMNS =
  "grid grid-cols-[64px_84px_64px_minmax(112px,1fr)_minmax(0,5fr)_minmax(0,2fr)] items-center gap-x-3 px-4";

interface Props {
  entry: AuditEntry;
  isSelected: boolean;
  isOpen: boolean;
  onToggle: () => void;
}

export function EntryRow({ entry, isSelected, isOpen, onToggle }: Props) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isSelected) {
      row.current?.scrollIntoView({ block: "nearest" });
    }
  }, [isSelected, isOpen]);
  const reason = describeReason(entry);
  const isCall = entry.kind === "decision" || entry.kind === "answer";
  return (
    <li
      ref={row}
      aria-current={isSelected ? "true" : undefined}
      className="border-b aria-[current]:shadow-[inset_2px_0_0_var(--accent)]"
    >
      <div
        className={cn(
          AUDIT_COLUMNS,
          "relative min-h-9 py-1.5 hover:bg-hover max-lg:flex max-lg:flex-wrap max-lg:gap-y-0.5 max-md:py-2",
          isSelected && "bg-selected",
        )}
      >
        <Time value={entry.created_at} short className="text-muted" />
        <span>
          <Badge tone={toneOf(entry)}>{describeOutcome(entry)}</Badge>
        </span>
        <span className="text-muted">{describeDecider(entry)}</span>
        <SafeText className="truncate max-lg:ml-auto">{entry.principal_name ?? ""}</SafeText>
        <button
          type="button"
          aria-expanded={isOpen}
          className="min-w-0 text-left outline-offset-[-2px] after:absolute after:inset-0 max-lg:basis-full"
          onClick={onToggle}
        >
          <SafeText className={cn("block truncate", isCall && "font-mono text-sm")}>{describeSubject(entry)}</SafeText>
          {reason !== "" && <SafeText className="block truncate text-sm text-muted">{reason}</SafeText>}
        </button>
        {entry.session_id === null ? (
          <span className="max-lg:hidden" />
        ) : (
          <Link
            to="/sessions/$sessionId"
            params={{ sessionId: entry.session_id }}
            search={entry.event_id === null ? {} : { event: entry.event_id }}
            className="relative z-10 min-w-0 truncate text-accent hover:underline"
          >
            <SafeText>{entry.session_title ?? `…${entry.session_id.slice(-8)}`}</SafeText>
          </Link>
        )}
      </div>
      {isOpen && <EntryDetails entry={entry} />}
    </li>
  );
}
