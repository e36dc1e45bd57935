// The sidebar: pages, and the sessions that the caller pinned.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";

import { inboxCountsQuery } from "../api/queries/inbox";
import { pinnedSessionsQuery } from "../api/queries/sessions";
import { getAction } from "../actions/registry";
import { displayShortcut } from "../actions/shortcuts";
import { State } from "../design/components/state";
import { SafeText } from "../design/text/text";
import { NAVIGATION } from "./navigation";

const LINK =
  "flex h-8 items-center gap-2 rounded-md px-2 text-muted hover:bg-hover hover:text-text data-[status=active]:bg-selected data-[status=active]:font-medium data-[status=active]:text-text";

export function Sidebar() {
  return (
    <nav
      aria-label="Main"
      className="flex h-full w-52 shrink-0 flex-col overflow-y-auto border-r bg-surface p-2 max-md:hidden"
    >
      <Link to="/" className="mb-2 flex h-8 items-center gap-2 rounded-md px-2 font-semibold">
        <img src="/icon.svg" alt="" className="size-5" />
        Footplate
      </Link>
      <Link
        to="/new"
        className="mb-2 flex h-8 items-center gap-2 rounded-md border border-line-strong bg-canvas px-2 hover:bg-hover"
        title={`New session (${displayShortcut(getAction("global.new-session").shortcut ?? "").join(" then ")})`}
      >
        <Plus aria-hidden className="size-4" />
        New session
      </Link>
      <ul className="flex flex-col gap-0.5">
        {NAVIGATION.map(({ to, title, icon: Icon, action }) => (
          <li key={to}>
            <Link
              to={to}
              className={LINK}
              title={`${title} (${displayShortcut(getAction(action).shortcut ?? "").join(" then ")})`}
            >
              <Icon aria-hidden className="size-4" />
              {title}
              {to === "/inbox" && <InboxCount className="ml-auto" />}
            </Link>
          </li>
        ))}
      </ul>
      <PinnedSessions />
    </nav>
  );
}

export function InboxCount({ className }: { className?: string }) {
  const { data } = useQuery(inboxCountsQuery);
  if (data === undefined || data.needs_you === 0) {
    return null;
  }
  return (
    <span className={className}>
      <span className="rounded-sm bg-waiting-soft px-1.5 text-xs font-medium text-waiting">
        {data.needs_you}
        <span className="sr-only"> waiting for a person</span>
      </span>
    </span>
  );
}

function PinnedSessions() {
  const { data } = useQuery(pinnedSessionsQuery);
  if (data === undefined || data.data.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="pinned" className="mt-4 border-t pt-3">
      <h2 id="pinned" className="px-2 pb-1 text-xs font-medium text-muted">
        Pinned
      </h2>
      <ul className="flex flex-col gap-0.5">
        {data.data.map((session) => (
          <li key={session.id}>
            <Link to="/sessions/$sessionId" params={{ sessionId: session.id }} className={LINK}>
              <State state={session.state} iconOnly />
              <SafeText className="truncate">{session.title ?? "Untitled"}</SafeText>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
