// Temporal's task queues: how much waits in each, for how long, and who polls it.
import type { TaskQueue } from "@/api/queries/health";
import { cn } from "@/design/classes";
import { CELL, TABLE, WIDE_ONLY } from "@/design/components/table";
import { formatDuration } from "@/design/format";
import { SafeText } from "@/design/text/text";

const HEADING = cn(CELL, "border-t text-left text-sm font-normal text-muted");
const NUMBER = cn(CELL, "text-right whitespace-nowrap");

export function sortQueues(queues: readonly TaskQueue[]): TaskQueue[] {
  return [...queues].sort((one, other) => one.name.localeCompare(other.name) || other.kind.localeCompare(one.kind));
}

export function QueueTable({ queues }: { queues: readonly TaskQueue[] }) {
  return (
    <table aria-label="Queues" className={TABLE}>
      <thead>
        <tr>
          <th scope="col" className={HEADING}>
            Queue
          </th>
          <th scope="col" className={cn(HEADING, WIDE_ONLY)}>
            Kind
          </th>
          <th scope="col" className={cn(HEADING, WIDE_ONLY)}>
            Backend
          </th>
          <th scope="col" className={cn(HEADING, "text-right")} title="Tasks that no worker has taken yet">
            Waiting
          </th>
          <th scope="col" className={cn(HEADING, "text-right")} title="How long the oldest task has waited">
            Oldest
          </th>
          <th scope="col" className={cn(HEADING, WIDE_ONLY, "text-right whitespace-nowrap")} title="Tasks per second">
            In and out per s
          </th>
          <th
            scope="col"
            className={cn(HEADING, WIDE_ONLY, "text-right")}
            title="Workers that asked for tasks in the last minutes"
          >
            Polled by
          </th>
        </tr>
      </thead>
      <tbody>
        {queues.map((queue) => (
          <Row key={`${queue.name} ${queue.kind}`} queue={queue} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ queue }: { queue: TaskQueue }) {
  const isIdle = queue.backlog === 0;
  const pollers = queue.pollers === 1 ? "1 worker" : `${queue.pollers} workers`;
  return (
    <tr className="hover:bg-hover">
      <th scope="row" className={cn(CELL, "w-full max-w-0 py-1.5 text-left font-medium")}>
        <SafeText className="block truncate">{queue.name}</SafeText>
        <span className="block truncate text-sm font-normal text-muted md:hidden">
          {`${queue.kind}, polled by ${pollers}`}
        </span>
      </th>
      <td className={cn(CELL, WIDE_ONLY, "text-muted")}>{queue.kind}</td>
      <td className={cn(CELL, WIDE_ONLY, "whitespace-nowrap text-muted")}>
        {queue.backend === null ? "any" : <SafeText>{queue.backend}</SafeText>}
      </td>
      <td className={cn(NUMBER, "min-w-20", isIdle && "text-muted")}>{queue.backlog.toLocaleString("en-US")}</td>
      <td className={cn(NUMBER, "min-w-20", isIdle && "text-muted")}>
        {isIdle ? "–" : formatDuration(queue.oldest_seconds)}
      </td>
      <td className={cn(NUMBER, WIDE_ONLY, "text-muted")}>
        {`${queue.added_per_second.toFixed(1)} / ${queue.taken_per_second.toFixed(1)}`}
      </td>
      <td className={cn(NUMBER, WIDE_ONLY, queue.pollers === 0 && "text-waiting")}>
        {queue.pollers === 0 ? "none" : pollers}
      </td>
    </tr>
  );
}
