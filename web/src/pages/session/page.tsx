// Session: the conversation, what changed, and the tools to steer.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ComponentType, Suspense, useEffect, useState } from "react";

import { useActions } from "@/actions/use-actions";
import { ApiError } from "@/api/errors";
import { sessionQuery } from "@/api/queries/sessions";
import type { Session } from "@/api/session-state";
import { buttonStyle } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { Tab, TabList, TabPanel, Tabs } from "@/design/components/tabs";
import { lazyPart } from "@/frame/lazy-part";
import { usePageTitle } from "@/frame/page-title";

import { SessionHeader } from "./header";
import { sessionLog } from "./log/use-session-log";
import { SESSION_TABS, type SessionTab } from "./search";
import { createSessionChanges } from "./session-changes";
import { SessionToolbar } from "./toolbar";

const route = getRouteApi("/frame/sessions/$sessionId");

const TITLES: Record<SessionTab, string> = {
  conversation: "Conversation",
  changes: "Changes",
  files: "Files",
  terminal: "Terminal",
  steps: "Steps",
  children: "Children",
  forks: "Forks",
};

const importConversation = () => import("./conversation/tab");

/** The import that begins while the session itself is being read. A further attempt needs one of its own. */
let begun: ReturnType<typeof importConversation> | null = importConversation();
begun.catch(() => undefined);

function loadConversation(): ReturnType<typeof importConversation> {
  const loading = begun ?? importConversation();
  begun = null;
  return loading;
}

/** Each tab is loaded when it is first opened; the conversation at once, while the session itself is being read. */
const TABS: Record<SessionTab, ComponentType<{ session: Session }>> = {
  conversation: lazyPart(TITLES.conversation, loadConversation),
  changes: lazyPart(TITLES.changes, () => import("./changes/tab")),
  files: lazyPart(TITLES.files, () => import("./files/tab")),
  terminal: lazyPart(TITLES.terminal, () => import("./terminal/tab")),
  steps: lazyPart(TITLES.steps, () => import("./steps/tab")),
  children: lazyPart(TITLES.children, () => import("./children/tab")),
  forks: lazyPart(TITLES.forks, () => import("./forks/tab")),
};

export default function SessionPage() {
  const { sessionId } = route.useParams();
  const { tab = "conversation" } = route.useSearch();
  const { data: session, error, isPending, refetch } = useQuery(sessionQuery(sessionId));
  useEffect(() => {
    if (tab === "conversation") {
      void sessionLog(sessionId).load();
    }
  }, [sessionId, tab]);
  usePageTitle(session?.title ?? (isPending ? "Session" : "Untitled session"));
  if (isPending) {
    return <SkeletonRows />;
  }
  if (error instanceof ApiError && error.status === 404) {
    return (
      <EmptyState
        title="This session does not exist"
        action={
          <Link to="/sessions" className={buttonStyle({ variant: "secondary" })}>
            Open the sessions
          </Link>
        }
      >
        It was deleted, or you cannot see it. Its owner can share it with you.
      </EmptyState>
    );
  }
  if (session !== undefined) {
    return <OpenSession key={session.id} session={session} />;
  }
  return (
    <div className="p-4">
      <ErrorPanel title="The session could not be loaded" error={error} onRetry={() => void refetch()} />
    </div>
  );
}

function OpenSession({ session }: { session: Session }) {
  const { tab = "conversation" } = route.useSearch();
  const navigate = route.useNavigate();
  const [isRenaming, setRenaming] = useState(false);
  const changes = createSessionChanges(useQueryClient(), session);

  function show(next: SessionTab): void {
    void navigate({ search: (search) => ({ ...search, tab: next }), replace: true });
  }
  useActions(
    Object.fromEntries(
      SESSION_TABS.map((one) => [
        `session.tab-${one}`,
        () => {
          show(one);
        },
      ]),
    ),
  );

  return (
    <>
      <SessionHeader
        session={session}
        isRenaming={isRenaming}
        onRename={(title) => {
          setRenaming(false);
          if (title !== null && title !== (session.title ?? "")) {
            void changes.rename(title);
          }
        }}
      />
      <Tabs value={tab} onValueChange={show} className="flex min-h-0 flex-1 flex-col">
        <div className="flex items-center border-b">
          <TabList label="Parts of the session" className="min-w-0 flex-1 border-b-0">
            {SESSION_TABS.map((one) => (
              <Tab key={one} value={one}>
                {TITLES[one]}
              </Tab>
            ))}
          </TabList>
          <SessionToolbar
            session={session}
            hasPlayback={tab === "steps" || tab === "terminal"}
            onRename={() => {
              setRenaming(true);
            }}
          />
        </div>
        {SESSION_TABS.map((one) => {
          const Content = TABS[one];
          return (
            <TabPanel key={one} value={one} className="flex min-h-0 flex-1 flex-col">
              <Suspense fallback={<SkeletonRows />}>
                <Content session={session} />
              </Suspense>
            </TabPanel>
          );
        })}
      </Tabs>
    </>
  );
}
