// Edits the organisation's rules, hooks and approval settings, and shows what would change before they are saved.
import { useQuery } from "@tanstack/react-query";

import { meQuery } from "@/api/queries/me";
import { policyQuery } from "@/api/queries/policy";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";

import { Editor } from "./editor";

export default function EditSection() {
  const me = useQuery(meQuery);
  // What others change meanwhile must not replace what is being typed.
  const policy = useQuery({ ...policyQuery, staleTime: "static" });
  if (policy.error !== null && policy.data === undefined) {
    return (
      <ErrorPanel
        className="m-4"
        title="The rules could not be loaded"
        error={policy.error}
        onRetry={() => void policy.refetch()}
      />
    );
  }
  if (policy.data === undefined || me.data === undefined || (policy.isFetching && !policy.isFetchedAfterMount)) {
    return <SkeletonRows />;
  }
  return <Editor stored={policy.data} canChange={me.data.permissions.includes("change_policy")} />;
}
