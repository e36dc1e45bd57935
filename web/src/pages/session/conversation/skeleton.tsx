// The conversation while it loads.
import { Skeleton } from "@/design/components/skeleton";

export function ConversationSkeleton() {
  return (
    <div role="status" aria-label="Loading" className="min-h-0 flex-1 overflow-hidden px-4 pt-6 md:px-8">
      <div className="mx-auto flex max-w-[52rem] flex-col gap-4">
        <Skeleton className="h-10 w-full" />
        <Skeleton className="h-4 w-2/5" />
        <Skeleton className="h-4 w-3/5" />
        <Skeleton className="h-4 w-1/2" />
        <Skeleton className="h-24 w-full" />
        <Skeleton className="h-4 w-1/3" />
      </div>
    </div>
  );
}
