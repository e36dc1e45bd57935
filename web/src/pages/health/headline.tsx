// The sentence that says whether everything runs, and below it what else is wrong.
import { CircleAlert, CircleCheck, TriangleAlert } from "lucide-react";

import { cn } from "@/design/classes";
import { Skeleton } from "@/design/components/skeleton";
import { SafeText } from "@/design/text/text";

import type { Finding } from "./verdict";

const TONES = {
  success: { icon: CircleCheck, color: "text-success" },
  waiting: { icon: TriangleAlert, color: "text-waiting" },
  failed: { icon: CircleAlert, color: "text-failed" },
} as const;

interface Props {
  /** Null: not enough is known yet. */
  summary: Finding | null;
  problems: readonly Finding[];
  /** Whether it stays unknown until something can be loaded again. */
  isUnknown: boolean;
}

export function Headline({ summary, problems, isUnknown }: Props) {
  const others = problems.filter((problem) => problem !== summary);
  return (
    <section aria-label="Summary" className="px-4 pt-4 pb-5">
      <div className="flex min-h-7 items-center">
        {summary !== null ? (
          <Line finding={summary} className="text-lg font-semibold" />
        ) : isUnknown ? (
          <p className="text-lg font-semibold">It is not known whether everything runs.</p>
        ) : (
          <Skeleton className="h-5 w-80" />
        )}
      </div>
      {others.length > 0 && (
        <ul aria-label="Other problems" className="mt-1 flex flex-col gap-1">
          {others.map((problem) => (
            <li key={problem.text}>
              <Line finding={problem} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Line({ finding, className }: { finding: Finding; className?: string }) {
  const { icon: Icon, color } = TONES[finding.tone];
  return (
    <p className={cn("flex items-start gap-2", className)}>
      <Icon aria-hidden className={cn("mt-0.5 size-5 shrink-0", color)} />
      <SafeText className="min-w-0 break-words">{finding.text}</SafeText>
    </p>
  );
}
