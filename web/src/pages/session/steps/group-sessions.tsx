// The sessions of a parallel step, nested below it: what each does, how it is doing, and a link to it.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Check, CircleDashed, CornerDownRight } from "lucide-react";

import { type Session } from "@/api/session-state";
import { State } from "@/design/components/state";
import { formatMoney } from "@/design/format";
import { SafeText } from "@/design/text/text";
import { childrenQuery } from "../children/queries";
import { activityText } from "../children/tree";
import { isTakenOver, membersWithSessions } from "./group";
import type { GroupMember, Step } from "./model";

export function GroupSessions({ session, step }: { session: Session; step: Step }) {
  const hasStarted = step.started_at !== null;
  const { data: children = [] } = useQuery({ ...childrenQuery(session.id), enabled: hasStarted });
  const members = membersWithSessions(step, children);
  return (
    <ul aria-label="Sessions of the step" className="flex flex-col rounded-md border bg-canvas">
      {members.map(({ member, child }) => (
        <li key={member.index} className="border-b last:border-b-0">
          <MemberRow member={member} child={child} isTaken={isTakenOver(step, member)} />
        </li>
      ))}
    </ul>
  );
}

function MemberRow({ member, child, isTaken }: { member: GroupMember; child: Session | undefined; isTaken: boolean }) {
  const name = member.name ?? member.title ?? `Session ${member.index + 1}`;
  const content = (
    <>
      <CornerDownRight aria-hidden className="size-4 shrink-0 text-faint" />
      <SafeText className="shrink-0 font-medium">{name}</SafeText>
      <SafeText limit={300} className="min-w-0 flex-1 truncate text-muted">
        {member.error ?? (member.text.trim() === "" ? member.work : member.text)}
      </SafeText>
      {isTaken && (
        <span className="inline-flex shrink-0 items-center gap-1 text-sm font-medium text-success">
          <Check aria-hidden className="size-4" /> taken over
        </span>
      )}
      {child === undefined ? (
        <span className="inline-flex items-center gap-1.5 text-muted">
          <CircleDashed aria-hidden className="size-4" /> {member.outcome ?? "waiting"}
        </span>
      ) : (
        <>
          <SafeText className="max-w-72 shrink-0 truncate text-sm text-muted max-lg:hidden">
            {child.end == null ? activityText(child) : ""}
          </SafeText>
          <span className="shrink-0 text-sm text-muted">{formatMoney(child.usage.cost_microusd)}</span>
          <State state={child.state} />
        </>
      )}
    </>
  );
  const id = child?.id ?? member.sessionId;
  return id === null ? (
    <span className="flex min-h-9 items-center gap-3 px-3 py-1 max-md:flex-wrap">{content}</span>
  ) : (
    <Link
      to="/sessions/$sessionId"
      params={{ sessionId: id }}
      className="flex min-h-9 items-center gap-3 px-3 py-1 outline-offset-[-2px] hover:bg-hover max-md:min-h-14 max-md:flex-wrap"
    >
      {content}
    </Link>
  );
}
