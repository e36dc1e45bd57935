// A part of the page: its title, what belongs beside it, and what is shown while there is nothing to read.
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { formatClock } from "@/design/format";

interface SectionProps {
  title: string;
  aside?: ReactNode;
  children: ReactNode;
}

export function Section({ title, aside, children }: SectionProps) {
  return (
    <section aria-label={title} className="flex flex-col pb-6">
      <div className="flex min-h-8 flex-wrap items-center gap-x-4 px-4 pb-1">
        <h2 className="flex-1 font-semibold">{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

interface ReadingProps<T> {
  query: UseQueryResult<T>;
  /** What could not be loaded, such as "The workers". */
  name: string;
  children: (data: T) => ReactNode;
}

/** What was read last stays, also if it could not be read again; then its time is stated. */
export function Reading<T>({ query, name, children }: ReadingProps<T>) {
  if (query.data === undefined) {
    return query.error === null ? (
      <SkeletonRows count={2} />
    ) : (
      <ErrorPanel
        className="mx-4"
        title={`${name} could not be loaded`}
        error={query.error}
        onRetry={() => void query.refetch()}
      />
    );
  }
  return (
    <>
      {query.error !== null && (
        <p className="px-4 pb-1 text-sm text-waiting">
          {`${name} could not be read again. This is from ${formatClock(new Date(query.dataUpdatedAt))}.`}
        </p>
      )}
      {children(query.data)}
    </>
  );
}
