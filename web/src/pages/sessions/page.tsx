// Sessions: what every agent is doing.
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";

import { sessionsQuery } from "@/api/queries/sessions";
import { describeActivity, sessionState } from "@/api/session-state";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { Row } from "@/design/components/row";
import { SkeletonRows } from "@/design/components/skeleton";
import { State } from "@/design/components/state";
import { Time } from "@/design/components/time";
import { formatMoney } from "@/design/format";
import { SafeText } from "@/design/text/text";
import { usePageTitle } from "@/frame/page-title";

const route = getRouteApi("/frame/sessions");

export default function SessionsPage() {
  usePageTitle("Sessions");
  const { layout: _layout, selected: _selected, ...filters } = route.useSearch();
  const { data, error, isPending, refetch } = useInfiniteQuery(sessionsQuery(filters));
  if (isPending) {
    return <SkeletonRows />;
  }
  if (data === undefined) {
    return (
      <div className="p-4">
        <ErrorPanel title="The sessions could not be loaded" error={error} onRetry={() => void refetch()} />
      </div>
    );
  }
  const sessions = data.pages.flatMap((page) => page.data);
  if (sessions.length === 0) {
    return (
      <EmptyState title="No sessions yet" command='footplate run "Make the tests pass"'>
        A session is an agent that works on a task.
      </EmptyState>
    );
  }
  return sessions.map((session) => (
    <Link
      key={session.id}
      to="/sessions/$sessionId"
      params={{ sessionId: session.id }}
      className="outline-offset-[-2px]"
    >
      <Row className="max-md:flex-wrap max-md:gap-y-0">
        <State state={sessionState(session)} className="w-28" />
        <SafeText className="min-w-0 flex-1 truncate">{session.title ?? "Untitled"}</SafeText>
        <span className="w-60 truncate text-muted max-md:order-last max-md:w-full">
          {describeActivity(session.activity)}
        </span>
        <span className="w-24 truncate text-muted max-lg:hidden">{session.agent.name}</span>
        <span className="w-16 text-right">{formatMoney(session.usage.cost_microusd)}</span>
        <Time value={session.updated_at} short className="w-12 text-right text-muted" />
      </Row>
    </Link>
  ));
}
