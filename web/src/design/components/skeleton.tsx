// Placeholders while something loads. They appear after a moment, so that fast responses do not flash.
import { cn } from "../classes";

export function Skeleton({ className }: { className?: string }) {
  return <div aria-hidden className={cn("animate-skeleton rounded-sm bg-hover", className)} />;
}

/** Rows of a list. */
export function SkeletonRows({ count = 8 }: { count?: number }) {
  return (
    <div role="status" aria-label="Loading">
      {Array.from({ length: count }, (_, index) => (
        <div key={index} className="flex h-9 items-center gap-3 border-b px-4">
          <Skeleton className="size-4 rounded-full" />
          <Skeleton className={cn("h-3", ["w-1/3", "w-1/2", "w-1/4", "w-2/5"][index % 4])} />
          <Skeleton className="ml-auto h-3 w-12" />
        </div>
      ))}
    </div>
  );
}
