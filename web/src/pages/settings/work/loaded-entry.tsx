// Shows an entry when it is loaded, and says why it is not.
import { ArrowLeft } from "lucide-react";
import type { ReactNode } from "react";

import { ApiError } from "@/api/errors";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { SafeText } from "@/design/text/text";

/** The parts of a query's result that this needs. */
interface LoadedQuery<T> {
  data: T | undefined;
  error: Error | null;
  refetch: () => unknown;
}

interface LoadedEntryProps<T> {
  query: LoadedQuery<T>;
  /** What it is, such as "agent". */
  noun: string;
  onClose: () => void;
  children: (entry: T) => ReactNode;
}

export function LoadedEntry<T>({ query, noun, onClose, children }: LoadedEntryProps<T>) {
  if (query.data !== undefined) {
    return children(query.data);
  }
  if (query.error instanceof ApiError && query.error.status === 404) {
    return (
      <EmptyState title={`There is no such ${noun}`} action={<Button onClick={onClose}>Show all {noun}s</Button>}>
        The link may be incomplete, or the {noun} was deleted.
      </EmptyState>
    );
  }
  return query.error === null ? (
    <SkeletonRows />
  ) : (
    <ErrorPanel className="m-4" title={`The ${noun} could not be loaded`} error={query.error} onRetry={query.refetch} />
  );
}

interface EntryHeaderProps {
  title: string;
  backLabel: string;
  onBack: () => void;
  state?: ReactNode;
  /** Buttons, and a menu for what is dangerous. */
  children?: ReactNode;
}

export function EntryHeader({ title, backLabel, onBack, state, children }: EntryHeaderProps) {
  return (
    <header className="flex flex-wrap items-center gap-x-3 gap-y-2">
      <Button
        variant="quiet"
        size="icon"
        aria-label={backLabel}
        title={backLabel}
        className="-ml-2 max-md:size-11"
        onClick={onBack}
      >
        <ArrowLeft />
      </Button>
      <h2 className="max-w-full min-w-0 text-lg font-semibold [overflow-wrap:anywhere] max-md:flex-1">
        <SafeText limit={300}>{title}</SafeText>
      </h2>
      <span className="max-md:basis-full max-md:empty:hidden md:flex-1">{state}</span>
      {children !== undefined && <div className="flex gap-2 max-md:w-full">{children}</div>}
    </header>
  );
}
