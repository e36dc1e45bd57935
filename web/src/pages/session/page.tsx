// Session: the conversation, what changed, and the tools to steer.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type ComponentType, lazy, Suspense } from "react";

import { sessionQuery } from "@/api/queries/sessions";
import { describeActivity, type Session, sessionState } from "@/api/session-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { State } from "@/design/components/state";
import { Tab, TabList, TabPanel, Tabs } from "@/design/components/tabs";
import { Time } from "@/design/components/time";
import { formatMoney, formatTokens } from "@/design/format";
import { usePageTitle } from "@/frame/page-title";

import { SESSION_TABS, type SessionTab } from "./search";

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

/** Each tab is loaded when it is first opened. */
const TABS: Record<SessionTab, ComponentType<{ session: Session }>> = {
  conversation: lazy(() => import("./conversation/tab")),
  changes: lazy(() => import("./changes/tab")),
  files: lazy(() => import("./files/tab")),
  terminal: lazy(() => import("./terminal/tab")),
  steps: lazy(() => import("./steps/tab")),
  children: lazy(() => import("./children/tab")),
  forks: lazy(() => import("./forks/tab")),
};

export default function SessionPage() {
  const { sessionId } = route.useParams();
  const { tab = "conversation" } = route.useSearch();
  const navigate = route.useNavigate();
  const { data: session, error, isPending, refetch } = useQuery(sessionQuery(sessionId));
  usePageTitle(session?.title ?? "Session");
  if (isPending) {
    return <SkeletonRows />;
  }
  if (session === undefined) {
    return (
      <div className="p-4">
        <ErrorPanel title="The session could not be loaded" error={error} onRetry={() => void refetch()} />
      </div>
    );
  }
  const tokens = session.usage.input_tokens + session.usage.output_tokens;
  return (
    <>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 border-b px-4 py-2">
        <State state={sessionState(session)} />
        <span className="text-muted">{describeActivity(session.activity)}</span>
        <span className="ml-auto flex gap-4 text-muted">
          <span>{formatMoney(session.usage.cost_microusd)}</span>
          <span>{formatTokens(tokens)} tokens</span>
          <Time value={session.created_at} />
        </span>
      </div>
      <Tabs
        value={tab}
        onValueChange={(value: SessionTab) => {
          void navigate({ search: (search) => ({ ...search, tab: value }), replace: true });
        }}
        className="flex min-h-0 flex-1 flex-col"
      >
        <TabList label="Parts of the session">
          {SESSION_TABS.map((one) => (
            <Tab key={one} value={one}>
              {TITLES[one]}
            </Tab>
          ))}
        </TabList>
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
