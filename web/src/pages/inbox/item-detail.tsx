// One item: where it is from, what the agent said before, and what a person can do.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { ArrowLeft, Clock, UserRound } from "lucide-react";
import { useState } from "react";

import { useActions } from "@/actions/use-actions";
import { api, request, required } from "@/api/client";
import type { InboxItem, Listing } from "@/api/contract";
import { keys } from "@/api/keys";
import { meQuery } from "@/api/queries/me";
import { Button } from "@/design/components/button";
import { Menu, MenuContent, MenuItem, MenuLabel, MenuSeparator, MenuTrigger } from "@/design/components/menu";
import { Time } from "@/design/components/time";
import { formatClock } from "@/design/format";
import { SafeText } from "@/design/text/text";
import { ApprovalPanel } from "./approval-panel";
import type { Decisions } from "./decisions";
import { snoozeChoices } from "./describe";
import { FailurePanel } from "./failure-panel";
import { QuestionPanel } from "./question-panel";

interface Props {
  item: InboxItem;
  projectName: string | null;
  decisions: Decisions;
  onBack: () => void;
}

export function ItemDetail({ item, projectName, decisions, onBack }: Props) {
  const { data: me } = useQuery(meQuery);
  const may = (permission: string): boolean => me?.permissions.includes(permission) ?? false;
  const navigate = useNavigate();
  const target = {
    to: "/sessions/$sessionId",
    params: { sessionId: item.session.id },
    search: { tab: "conversation", ...(item.turn_id === null ? {} : { turn: item.turn_id }) },
  } as const;
  useActions({ "inbox.open-session": () => void navigate(target) });

  return (
    <article aria-label={item.title} className="flex min-h-full flex-col gap-4 px-4 pt-3 md:px-6">
      <header className="flex flex-col gap-1">
        <div className="flex items-center gap-2">
          <Button
            variant="quiet"
            size="icon"
            aria-label="Back to the list"
            className="-ml-2 size-11 md:hidden"
            onClick={onBack}
          >
            <ArrowLeft />
          </Button>
          <h2 className="min-w-0 flex-1 truncate text-lg font-semibold">
            <Link {...target} className="hover:underline">
              <SafeText>{item.session.title ?? "Untitled session"}</SafeText>
            </Link>
          </h2>
          {(may("operate") || may("approve")) && (
            <>
              <AssignMenu item={item} decisions={decisions} me={me} canListMembers={may("manage_members")} />
              <SnoozeMenu item={item} decisions={decisions} />
            </>
          )}
        </div>
        <p className="flex flex-wrap gap-x-2 text-sm text-muted">
          {item.session.agent_name !== null && <SafeText>{item.session.agent_name}</SafeText>}
          {projectName !== null && (
            <>
              <span aria-hidden>·</span> <SafeText>{projectName}</SafeText>
            </>
          )}
          {item.turn_number !== null && (
            <>
              <span aria-hidden>·</span> turn {item.turn_number}
            </>
          )}
          <span aria-hidden>·</span>
          <Time value={item.created_at} />
          {item.session.parent_session_id !== null && (
            <>
              <span aria-hidden>·</span>
              <Link
                to="/sessions/$sessionId"
                params={{ sessionId: item.session.parent_session_id }}
                className="underline"
              >
                child of another session
              </Link>
            </>
          )}
        </p>
        {item.snoozed_until !== null && (
          <p className="flex items-center gap-2 text-sm text-waiting">
            Snoozed, back <Time value={item.snoozed_until} />
            <Button size="sm" onClick={() => void decisions.snooze(item, null)}>
              Bring it back now
            </Button>
          </p>
        )}
      </header>
      {item.kind !== "failure" && item.kind !== "merge_conflict" && <AgentContext item={item} />}
      {item.approval !== null && (
        <ApprovalPanel item={item} approval={item.approval} canDecide={may("approve")} decisions={decisions}>
          <p className="text-sm">
            <Link
              to="/sessions/$sessionId"
              params={{ sessionId: item.session.id }}
              search={{ tab: "changes" }}
              className="text-accent hover:underline"
            >
              See what this session has changed so far
            </Link>
          </p>
        </ApprovalPanel>
      )}
      {item.question !== null && (
        <QuestionPanel item={item} question={item.question} canAnswer={may("operate")} decisions={decisions} />
      )}
      {(item.failure !== null || item.merge_conflict !== null) && (
        <FailurePanel item={item} canOperate={may("operate")} decisions={decisions} />
      )}
    </article>
  );
}

interface MessageEvent {
  id: string;
  type: string;
  content?: { type: string; text?: string }[];
  processed_at: string;
}

/** What the agent said last before it asked. */
function AgentContext({ item }: { item: InboxItem }) {
  const [isOpen, setOpen] = useState(false);
  const { data } = useQuery({
    queryKey: [...keys.inbox, "context", item.id],
    queryFn: ({ signal }) =>
      request<Listing<MessageEvent>>("GET", `/v1/sessions/${encodeURIComponent(item.session.id)}/events`, {
        query: { order: "desc", limit: 3, "types[]": "agent.message", "created_at[lte]": item.created_at },
        signal,
      }),
    enabled: item.thread_id === null,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const text = data?.data
    .map((event) => (event.content ?? []).map((part) => part.text ?? "").join(""))
    .find((one) => one.trim() !== "");
  if (text === undefined) {
    return null;
  }
  const isLong = text.length > 240 || text.split("\n").length > 3;
  return (
    <blockquote className="border-l-2 border-line-strong pl-3 text-muted">
      <p className={`break-words whitespace-pre-wrap ${isOpen ? "" : "line-clamp-3"}`}>
        <SafeText>{text}</SafeText>
      </p>
      {isLong && (
        <button
          type="button"
          className="min-h-6 text-sm text-accent hover:underline"
          onClick={() => {
            setOpen(!isOpen);
          }}
        >
          {isOpen ? "Show less" : "Show all of what the agent said"}
        </button>
      )}
    </blockquote>
  );
}

function SnoozeMenu({ item, decisions }: { item: InboxItem; decisions: Decisions }) {
  const [isOpen, setOpen] = useState(false);
  useActions({
    "inbox.snooze": () => {
      setOpen(true);
    },
  });
  return (
    <Menu open={isOpen} onOpenChange={setOpen}>
      <MenuTrigger
        render={
          <Button variant="quiet" aria-label="Snooze" title="Snooze (Z)" className="max-md:size-11 max-md:px-0" />
        }
      >
        <Clock />
        <span className="max-md:sr-only">Snooze</span>
      </MenuTrigger>
      <MenuContent align="end">
        <MenuLabel>Snooze for everyone</MenuLabel>
        {/* oxlint-disable-next-line react/purity -- the menu offers times from when it opens */}
        {snoozeChoices(new Date()).map(({ label, until }) => (
          <MenuItem key={label} onClick={() => void decisions.snooze(item, until)}>
            {label}
            <span className="ml-auto pl-4 text-sm text-muted">{formatClock(until)}</span>
          </MenuItem>
        ))}
      </MenuContent>
    </Menu>
  );
}

interface AssignMenuProps {
  item: InboxItem;
  decisions: Decisions;
  me: { id: string; name: string; kind: string } | undefined;
  canListMembers: boolean;
}

function AssignMenu({ item, decisions, me, canListMembers }: AssignMenuProps) {
  const [isOpen, setOpen] = useState(false);
  useActions({
    "inbox.assign": () => {
      setOpen(true);
    },
  });
  const { data } = useQuery({
    queryKey: ["members"],
    queryFn: async ({ signal }) =>
      required(await api.GET("/v1/members", { params: { query: { limit: 100 } }, signal })),
    enabled: isOpen && canListMembers,
  });
  const others = data?.data.filter((member) => member.id !== me?.id && member.disabled_at === null) ?? [];
  return (
    <Menu open={isOpen} onOpenChange={setOpen}>
      <MenuTrigger
        render={
          <Button
            variant="quiet"
            aria-label={item.assignee === null ? "Assign" : `Assigned to ${item.assignee.name}`}
            title="Assign (M)"
            className="max-md:h-11 max-md:min-w-11"
          />
        }
      >
        <UserRound />
        {item.assignee === null ? (
          <span className="max-md:sr-only">Assign</span>
        ) : (
          <SafeText className="max-w-40 truncate">{item.assignee.name}</SafeText>
        )}
      </MenuTrigger>
      <MenuContent align="end">
        <MenuLabel>Assign to</MenuLabel>
        {me !== undefined && (
          <MenuItem
            disabled={item.assignee?.id === me.id}
            onClick={() => void decisions.assign(item, { id: me.id, name: "you" })}
          >
            Me
          </MenuItem>
        )}
        {others.map((member) => (
          <MenuItem
            key={member.id}
            disabled={item.assignee?.id === member.id}
            onClick={() => void decisions.assign(item, member)}
          >
            <SafeText className="truncate">{member.name}</SafeText>
          </MenuItem>
        ))}
        {item.assignee !== null && (
          <>
            <MenuSeparator />
            <MenuItem onClick={() => void decisions.assign(item, null)}>Nobody</MenuItem>
          </>
        )}
      </MenuContent>
    </Menu>
  );
}
