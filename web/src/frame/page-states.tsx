// What the router shows while a page loads, when it fails, and when there is none.
import { type ErrorComponentProps, Link, useRouter } from "@tanstack/react-router";

import { OfflineError } from "../api/errors";
import { buttonStyle } from "../design/components/button";
import { EmptyState } from "../design/components/empty-state";
import { ErrorPanel } from "../design/components/error-panel";
import { SkeletonRows } from "../design/components/skeleton";
import { useRetryWhenReachable } from "./use-retry-when-reachable";

export function PagePending() {
  return <SkeletonRows />;
}

export function PageError({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  function retry(): void {
    reset();
    void router.invalidate();
  }
  useRetryWhenReachable(error instanceof OfflineError, retry);
  return (
    <div className="p-4">
      <ErrorPanel error={error} title="The page could not be shown" onRetry={retry} />
    </div>
  );
}

export function PageNotFound() {
  return (
    <EmptyState
      title="There is no page at this address"
      action={
        <Link to="/sessions" className={buttonStyle({ variant: "secondary" })}>
          Open the sessions
        </Link>
      }
    >
      The link may be old or incomplete.
    </EmptyState>
  );
}
