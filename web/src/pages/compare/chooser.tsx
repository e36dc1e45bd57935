// Chooses the session to compare with: other attempts, forks and children first, then any other.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { request } from "@/api/client";
import type { Listing } from "@/api/contract";
import { sessionQuery } from "@/api/queries/sessions";
import { describeActivity, type Session } from "@/api/session-state";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { Input } from "@/design/components/input";
import { SkeletonRows } from "@/design/components/skeleton";
import { State } from "@/design/components/state";
import { Time } from "@/design/components/time";
import { formatMoney } from "@/design/format";
import { SafeText } from "@/design/text/text";

const SHOWN = 50;

interface ChooserProps {
  /** Undefined: the first one is chosen too. */
  sessionId: string | undefined;
  /** Not offered. */
  exceptId?: string | undefined;
  onChoose: (session: Session) => void;
}

export function Chooser({ sessionId, exceptId, onChoose }: ChooserProps) {
  const [text, setText] = useState("");
  const { data: session, error: sessionError } = useQuery({
    ...sessionQuery(sessionId ?? ""),
    enabled: sessionId !== undefined,
  });
  const { data, error, isPending } = useQuery({
    queryKey: ["compare", "choices", sessionId, session?.group_id, session?.project_ids[0], text.trim()],
    queryFn: ({ signal }) => findChoices(session, text.trim(), signal),
    enabled: sessionId === undefined || session !== undefined,
    placeholderData: (previous) => previous,
  });
  const failure = sessionError ?? error;
  if (failure !== null) {
    return <ErrorPanel className="m-4" title="The sessions could not be loaded" error={failure} />;
  }
  const choices = (data ?? []).filter(({ session: one }) => one.id !== sessionId && one.id !== exceptId);
  return (
    <section aria-label="Sessions to compare" className="mx-auto flex w-full max-w-3xl flex-col gap-2 p-4">
      <h2 className="text-lg font-semibold">
        {session === undefined ? (
          "Choose the first session"
        ) : (
          <>
            Compare <SafeText>{session.title ?? "Untitled session"}</SafeText> with
          </>
        )}
      </h2>
      <Input
        type="search"
        aria-label="Find a session"
        placeholder="Find a session by its title, messages or files"
        value={text}
        onValueChange={setText}
      />
      {isPending ? (
        <SkeletonRows />
      ) : (
        <ul className="divide-y rounded-md border">
          {choices.map(({ session: one, relation }) => (
            <li key={one.id}>
              <button
                type="button"
                className="flex min-h-11 w-full flex-wrap items-center gap-x-3 px-3 py-1.5 text-left hover:bg-hover"
                onClick={() => {
                  onChoose(one);
                }}
              >
                <State state={one.state} iconOnly />
                <SafeText className="min-w-0 flex-1 basis-48 truncate font-medium">
                  {one.title ?? "Untitled session"}
                </SafeText>
                {relation !== null && <span className="text-sm text-accent">{relation}</span>}
                <span className="text-sm text-muted max-md:hidden">{describeActivity(one.activity)}</span>
                <span className="text-sm text-muted">{formatMoney(one.usage.cost_microusd)}</span>
                <Time value={one.created_at} short className="text-sm text-muted" />
              </button>
            </li>
          ))}
        </ul>
      )}
      {!isPending && choices.length === 0 && (
        <EmptyState title="No other session">
          Start several attempts at one task, or fork a session, and compare them here.
        </EmptyState>
      )}
    </section>
  );
}

interface Choice {
  session: Session;
  /** How it is related to the one that is compared. */
  relation: string | null;
}

async function findChoices(session: Session | undefined, text: string, signal: AbortSignal): Promise<Choice[]> {
  const list = async (query: Record<string, string | undefined>): Promise<Session[]> =>
    (await request<Listing<Session>>("GET", "/v1/sessions", { query: { limit: SHOWN, ...query }, signal })).data;
  const q = text === "" ? undefined : text;
  const found: Choice[] = [];
  if (session !== undefined) {
    const groupId = session.group_id ?? undefined;
    const [group, children] = await Promise.all([
      groupId === undefined ? [] : list({ group_id: groupId, q }),
      list({ parent_id: session.id, q }),
    ]);
    found.push(...group.map((one) => ({ session: one, relation: "another attempt" })));
    found.push(...children.map((one) => ({ session: one, relation: "child" })));
  }
  const others = await list({ project_id: session?.project_ids[0], q });
  found.push(...others.map((one) => ({ session: one, relation: relate(session, one) })));
  const unique = new Map<string, Choice>();
  for (const choice of found) {
    if (!unique.has(choice.session.id)) {
      unique.set(choice.session.id, choice);
    }
  }
  const choices = [...unique.values()];
  return [...choices.filter((one) => one.relation !== null), ...choices.filter((one) => one.relation === null)];
}

function relate(session: Session | undefined, other: Session): string | null {
  if (session === undefined) {
    return null;
  }
  if (other.forked_from?.session_id === session.id) {
    return "fork";
  }
  if (session.forked_from?.session_id === other.id) {
    return "its parent";
  }
  const isSibling = session.forked_from != null && session.forked_from.session_id === other.forked_from?.session_id;
  return isSibling ? "fork of the same session" : null;
}
