// Sessions that have work and do not move, by reason, with what to do about it.
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

import type { ListedSession } from "@/api/queries/sessions";
import { cn } from "@/design/classes";
import { Time } from "@/design/components/time";
import { MessageText, SafeText } from "@/design/text/text";
import { toRow } from "@/pages/sessions/rows";

import { countSessions, type StuckGroup } from "./stuck";

/** Of each reason. The list of sessions has all. */
export const SHOWN = 8;

interface Props {
  groups: readonly StuckGroup[];
  total: number;
  selected: string | undefined;
}

export function StuckGroups({ groups, total, selected }: Props) {
  if (groups.length === 0) {
    return <p className="px-4 text-muted">Every session that has work moves, or waits for a person.</p>;
  }
  const shown = groups.reduce((sum, group) => sum + Math.min(SHOWN, group.sessions.length), 0);
  return (
    <>
      {groups.map((group) => (
        <div key={group.id} role="group" aria-label={group.cause} className="pb-3">
          <div className="px-4 pb-1">
            <h3 className="font-medium">
              <SafeText>{`${countSessions(group.sessions.length)}: ${group.cause}`}</SafeText>
            </h3>
            <p className="text-sm text-muted">
              <MessageText>{group.help}</MessageText>
            </p>
          </div>
          <ul aria-label={`Sessions: ${group.cause}`} className="border-t">
            {group.sessions.slice(0, SHOWN).map((session) => (
              <Row key={session.id} session={session} isSelected={session.id === selected} />
            ))}
          </ul>
        </div>
      ))}
      {total > shown && (
        <Link
          to="/sessions"
          search={{ stuck: true }}
          className="flex h-9 items-center px-4 text-accent hover:underline max-md:h-11"
        >
          {`Show all ${total.toLocaleString("en-US")} stuck sessions`}
        </Link>
      )}
    </>
  );
}

function Row({ session, isSelected }: { session: ListedSession; isSelected: boolean }) {
  const element = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isSelected) {
      element.current?.scrollIntoView({ block: "nearest" });
    }
  }, [isSelected]);
  const row = toRow(session);
  const { since } = session.activity;
  return (
    <li
      ref={element}
      aria-current={isSelected ? "true" : undefined}
      className={cn(
        "relative grid min-h-9 grid-cols-[minmax(0,3fr)_minmax(0,2fr)_minmax(0,1fr)_96px] items-center gap-x-3 border-b border-l-2 border-l-transparent px-4 hover:bg-hover aria-[current]:border-l-accent aria-[current]:bg-selected",
        "max-md:flex max-md:flex-wrap max-md:gap-y-0.5 max-md:py-2",
      )}
    >
      <Link
        to="/sessions/$sessionId"
        params={{ sessionId: session.id }}
        title={row.title}
        className="min-w-0 font-medium outline-offset-[-2px] after:absolute after:inset-0 max-md:basis-full"
      >
        <SafeText className="block truncate">{row.title}</SafeText>
      </Link>
      <SafeText className="min-w-0 truncate text-muted">{row.projects}</SafeText>
      <SafeText className="min-w-0 truncate text-muted">{row.ownerName ?? ""}</SafeText>
      <span className="text-right text-muted max-md:ml-auto">{since === null ? "" : <Time value={since} />}</span>
    </li>
  );
}
