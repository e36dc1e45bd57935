// Changes of a session: the diff of any turns, with comments that go to the agent.
import { useQuery } from "@tanstack/react-query";

import { meQuery } from "@/api/queries/me";
import type { Session } from "@/api/session-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { LeftOut, Nothing } from "./nothing";
import { Review } from "./review";
import { useChanges } from "./use-changes";
import { useChangesNavigation } from "./use-navigation";

export default function ChangesTab({ session }: { session: Session }) {
  return <Content key={session.id} session={session} />;
}

function Content({ session }: { session: Session }) {
  const navigation = useChangesNavigation(session.id);
  const changes = useChanges(session, navigation.search);
  const { data: me } = useQuery(meQuery);
  const { summary } = changes;
  const showAll = (): void => {
    navigation.showRange({ kind: "all" });
  };
  if (summary.error !== null && summary.data === undefined) {
    return (
      <div className="p-4">
        <ErrorPanel
          title="The changes could not be loaded"
          error={summary.error}
          onRetry={() => void summary.refetch()}
        />
      </div>
    );
  }
  if (changes.turnsError !== null && changes.turns.length === 0) {
    return (
      <div className="p-4">
        <ErrorPanel title="The turns could not be loaded" error={changes.turnsError} />
      </div>
    );
  }
  if (!changes.isUnknownRange && summary.data === undefined) {
    return <SkeletonRows />;
  }
  return (
    <Review
      session={session}
      changes={changes}
      navigation={navigation}
      canOperate={me?.permissions.includes("operate") ?? false}
      empty={
        changes.listed.length === 0 ? (
          <div className="min-h-0 flex-1 overflow-y-auto">
            <Nothing session={session} changes={changes} onAll={showAll} />
            <LeftOut paths={changes.tree?.left_out ?? []} />
          </div>
        ) : null
      }
    />
  );
}
