// Inbox: everything that needs a person.
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";

import { inboxQuery } from "@/api/queries/inbox";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { Row } from "@/design/components/row";
import { SkeletonRows } from "@/design/components/skeleton";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";
import { usePageTitle } from "@/frame/page-title";

const route = getRouteApi("/frame/inbox");

export default function InboxPage() {
  usePageTitle("Inbox");
  const { view = "needs_you", kind, project_id } = route.useSearch();
  const { data, error, isPending, refetch } = useInfiniteQuery(inboxQuery({ view, kind, project_id }));
  if (isPending) {
    return <SkeletonRows />;
  }
  if (data === undefined) {
    return (
      <div className="p-4">
        <ErrorPanel title="The inbox could not be loaded" error={error} onRetry={() => void refetch()} />
      </div>
    );
  }
  const items = data.pages.flatMap((page) => page.data);
  if (items.length === 0) {
    return (
      <EmptyState title="Nothing needs you">Approvals, questions and failures appear here as they happen.</EmptyState>
    );
  }
  return items.map((item) => (
    <Row key={item.id}>
      <SafeText className="min-w-0 flex-1 truncate">{item.title}</SafeText>
      <SafeText className="max-w-60 truncate text-muted">{item.session.title ?? "Untitled"}</SafeText>
      <Time value={item.created_at} className="text-muted" />
    </Row>
  ));
}
