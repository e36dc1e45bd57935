// The header of a session: state and reason, where it works, what it cost; and its title while it is renamed.
import { useQuery } from "@tanstack/react-query";
import { Bot, FolderGit2, GitFork } from "lucide-react";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { describeActivity, type Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { Input } from "@/design/components/input";
import { State } from "@/design/components/state";
import { Time } from "@/design/components/time";
import { formatMoney, formatTokens } from "@/design/format";
import { SafeText } from "@/design/text/text";
import { playbackQuery } from "./steps/queries";

/** A step runs, which a pause lets finish. */
const BUSY: readonly string[] = ["running", "waiting_for_approval", "waiting_for_answer", "waiting_for_result"];

interface HeaderProps {
  session: Session;
  isRenaming: boolean;
  onRename: (title: string | null) => void;
}

export function SessionHeader({ session, isRenaming, onRename }: HeaderProps) {
  const tokens = session.usage.input_tokens + session.usage.output_tokens;
  const { activity } = session;
  const { data: playback } = useQuery(playbackQuery(session.id));
  const pausesLater = playback?.playing === false && BUSY.includes(activity.state);
  const isWaiting = session.state === "needs_you";
  if (isRenaming) {
    return <RenameForm title={session.title ?? ""} onRename={onRename} />;
  }
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-0.5 px-4 pt-2 text-sm md:min-h-9">
      <State state={session.state} className="text-base" />
      <span className={`min-w-0 truncate max-md:flex-1 ${isWaiting ? "text-waiting" : "text-muted"}`}>
        <SafeText>{describeReason(session)}</SafeText>
        {activity.since !== null && (
          <>
            {" · "}
            <Time value={activity.since} short />
          </>
        )}
        {pausesLater && " · paused after this step"}
      </span>
      <span className="flex min-w-0 items-center gap-x-3 text-muted max-md:order-last max-md:w-full">
        {session.projects.map((project) => (
          <span key={project.id} className="flex min-w-0 items-center gap-1">
            <FolderGit2 aria-hidden className="size-3.5 shrink-0" />
            <SafeText className="truncate">{describeProject(session, project)}</SafeText>
          </span>
        ))}
        <span className="flex min-w-0 items-center gap-1">
          <Bot aria-hidden className="size-3.5 shrink-0" />
          <SafeText className="truncate">{session.agent.name}</SafeText>
        </span>
        {session.forked_from != null && (
          <Link
            to="/sessions/$sessionId"
            params={{ sessionId: session.forked_from.session_id }}
            className="flex items-center gap-1 hover:underline"
          >
            <GitFork aria-hidden className="size-3.5" /> fork
          </Link>
        )}
        {session.archived_at !== null && <span className="rounded-sm bg-hover px-1.5">archived</span>}
      </span>
      <span className="ml-auto flex shrink-0 gap-3 text-muted">
        <span title="Cost of all turns">{formatMoney(session.usage.cost_microusd)}</span>
        <span title="Input and output of all turns">{formatTokens(tokens)} tokens</span>
        <span title="Age" className="max-md:hidden">
          <Time value={session.created_at} short />
        </span>
      </span>
    </div>
  );
}

/** What it does or why it does not move, unless the state says so already. */
function describeReason({ activity, end }: Session): string {
  if (activity.state === "completed") {
    return "";
  }
  const hasOwnWords = ["running", "failed", "limit_reached", "timed_out"].includes(activity.state);
  const words = hasOwnWords && activity.message !== null ? activity.message : describeActivity(activity);
  if (words === activity.state) {
    return "";
  }
  return end?.reason == null ? words : `${words}: ${end.reason}`;
}

function describeProject(session: Session, project: { id: string; name: string | null }): string {
  const branch = (session.bases[project.id] as { branch?: string | null } | undefined)?.branch;
  const name = project.name ?? "deleted project";
  return branch == null ? name : `${name}@${branch}`;
}

function RenameForm({ title, onRename }: { title: string; onRename: (title: string | null) => void }) {
  const [text, setText] = useState(title);
  return (
    <form
      className="flex items-center gap-2 px-4 pt-2"
      onSubmit={(event) => {
        event.preventDefault();
        onRename(text.trim());
      }}
    >
      <Input
        aria-label="Title of the session"
        // oxlint-disable-next-line jsx-a11y/no-autofocus -- the person has just asked for this field
        autoFocus
        maxLength={2000}
        className="min-w-0 flex-1"
        value={text}
        onValueChange={setText}
        onFocus={(event) => {
          event.currentTarget.select();
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            onRename(null);
          }
        }}
      />
      <Button type="submit" variant="primary">
        Rename
      </Button>
      <Button
        variant="quiet"
        onClick={() => {
          onRename(null);
        }}
      >
        Cancel
      </Button>
    </form>
  );
}
