// Explains what the gate would decide about a call: nothing runs.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";

import { explainQuery } from "@/api/queries/policy";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";

import { CallForm } from "./call-form";
import { isProblem, readCall } from "./model";
import { Result } from "./result";

const route = getRouteApi("/frame/policy");

export default function ExplainSection() {
  const search = route.useSearch();
  const found = readCall(search);
  const call = found === null || isProblem(found) ? null : found;
  const explanation = useQuery({
    ...explainQuery(call ?? { tool: "", input: {} }),
    enabled: call !== null,
    placeholderData: keepPreviousData,
  });
  return (
    <div className="flex max-w-5xl flex-col gap-6 p-6 max-md:p-4">
      <CallForm
        key={JSON.stringify([search.tool, search.call])}
        problem={found !== null && isProblem(found) ? found : null}
      />
      {call === null && found === null && (
        <EmptyState
          title="Why is a call allowed, or not?"
          command='footplate policy explain --server "git push origin main"'
        >
          Write a call to see the decision, the rule that decides, and each part of a compound command. Nothing runs.
        </EmptyState>
      )}
      {call !== null && explanation.isPending && <SkeletonRows count={4} />}
      {call !== null && explanation.error !== null && (
        <ErrorPanel
          title="The call could not be explained"
          error={explanation.error}
          onRetry={() => void explanation.refetch()}
        />
      )}
      {call !== null && explanation.error === null && explanation.data !== undefined && (
        <Result call={call} explanation={explanation.data} isOutdated={explanation.isPlaceholderData} />
      )}
    </div>
  );
}
