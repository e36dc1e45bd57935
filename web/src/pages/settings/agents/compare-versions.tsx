// Two versions of an agent side by side: what changed, line by line.
import { useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { Suspense } from "react";

import { agentQuery, agentVersionListQuery } from "@/api/queries/agents";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { Select } from "@/design/components/select";
import { SkeletonRows } from "@/design/components/skeleton";
import { lazyPart } from "@/frame/lazy-part";

import { EntryHeader, LoadedEntry } from "../work/loaded-entry";
import type { SectionAddress } from "../shared/use-section";
import { describeVersion, parseVersions } from "./version-text";

const VersionDiff = lazyPart("The comparison", () => import("./version-diff"));

interface Props {
  agentId: string;
  versions: string;
  address: SectionAddress;
}

export function CompareVersions({ agentId, versions, address }: Props) {
  const query = useQuery(agentQuery(agentId));
  const list = useInfiniteQuery(agentVersionListQuery(agentId));
  const compared = parseVersions(versions);
  function showAgent(): void {
    address.open({ item: agentId });
  }
  const listed = list.data?.pages.flatMap((page) => page.data.map((one) => one.version)) ?? [];
  const numbers = [...new Set([...listed, ...(compared ?? [])])].sort((one, other) => other - one);
  const options = numbers.map((one) => ({ value: String(one), label: `Version ${one}` }));
  function choose(side: 0 | 1, version: string | null): void {
    if (compared !== null && version !== null) {
      const [older, newer] = compared;
      address.replace({ versions: side === 0 ? `${version}-${newer}` : `${older}-${version}` });
    }
  }
  return (
    <LoadedEntry query={query} noun="agent" onClose={address.close}>
      {(agent) => (
        <div className="flex min-h-0 flex-1 flex-col gap-4 p-6 max-md:p-4">
          <EntryHeader title={agent.name} backLabel="The agent" onBack={showAgent} />
          {compared === null ? (
            <EmptyState title="This address names no versions">The link may be incomplete.</EmptyState>
          ) : (
            <>
              <div className="grid grid-cols-2 gap-3">
                <Select
                  label="Earlier version"
                  className="w-full"
                  options={options}
                  value={String(compared[0])}
                  onChange={(version) => {
                    choose(0, version);
                  }}
                />
                <Select
                  label="Later version"
                  className="w-full"
                  options={options}
                  value={String(compared[1])}
                  onChange={(version) => {
                    choose(1, version);
                  }}
                />
              </div>
              <Diff agentId={agentId} versions={compared} />
            </>
          )}
        </div>
      )}
    </LoadedEntry>
  );
}

function Diff({ agentId, versions }: { agentId: string; versions: readonly [number, number] }) {
  const [before, after] = useQueries({ queries: versions.map((version) => agentQuery(agentId, version)) });
  const error = before?.error ?? after?.error ?? null;
  if (error !== null) {
    return (
      <ErrorPanel
        title="The versions could not be loaded"
        error={error}
        onRetry={() => {
          void before?.refetch();
          void after?.refetch();
        }}
      />
    );
  }
  if (before?.data === undefined || after?.data === undefined) {
    return <SkeletonRows />;
  }
  const [old, current] = [describeVersion(before.data), describeVersion(after.data)];
  if (old === current) {
    return <EmptyState title="These versions are equal" />;
  }
  return (
    <Suspense fallback={<SkeletonRows />}>
      <VersionDiff before={old} after={current} name={`${versions[0]}-${versions[1]}`} />
    </Suspense>
  );
}
