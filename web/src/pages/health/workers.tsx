// The workers: what each offers and does, and when it was last seen.
import { CirclePlay, Unplug } from "lucide-react";

import type { Worker } from "@/api/queries/health";
import { cn } from "@/design/classes";
import { CELL, TABLE, WIDE_ONLY } from "@/design/components/table";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";

import { describeLoad } from "./verdict";

const HEADING = cn(CELL, "border-t text-left text-sm font-normal text-muted");

interface Props {
  /** Those that run first. */
  workers: readonly Worker[];
  /** Of the server. */
  version: string | undefined;
}

/** Those that run first, then by host: a worker keeps its place when it is read again. */
export function sortWorkers(workers: readonly Worker[]): Worker[] {
  return [...workers].sort(
    (one, other) =>
      Number(one.state === "lost") - Number(other.state === "lost") ||
      one.host.localeCompare(other.host) ||
      one.started_at.localeCompare(other.started_at) ||
      one.id.localeCompare(other.id),
  );
}

export function WorkerTable({ workers, version }: Props) {
  return (
    <table aria-label="Workers" className={TABLE}>
      <thead className="max-md:hidden">
        <tr>
          <th scope="col" className={HEADING}>
            Worker
          </th>
          <th scope="col" className={HEADING}>
            State
          </th>
          <th scope="col" className={cn(HEADING, "text-right")}>
            Turns
          </th>
          <th scope="col" className={HEADING}>
            Backends
          </th>
          <th scope="col" className={HEADING}>
            Version
          </th>
          <th scope="col" className={HEADING}>
            Started
          </th>
          <th scope="col" className={HEADING}>
            Last seen
          </th>
        </tr>
      </thead>
      <tbody>
        {workers.map((worker) => (
          <Row key={worker.id} worker={worker} version={version} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ worker, version }: { worker: Worker; version: string | undefined }) {
  const isRunning = worker.state === "running";
  const text = cn(CELL, "whitespace-nowrap", WIDE_ONLY, !isRunning && "text-muted");
  const isOther = version !== undefined && isRunning && worker.version !== version;
  const shownVersion = worker.version ?? "older";
  const backends = worker.backends.join(", ") || "none";
  return (
    <tr className="hover:bg-hover">
      <th scope="row" className={cn(CELL, "w-full max-w-0 py-1.5 text-left font-medium")}>
        <span className={cn("flex min-w-0 items-baseline gap-2", !isRunning && "text-muted")}>
          <SafeText className="truncate">{worker.host}</SafeText>
          <code className="shrink-0 truncate font-mono text-xs font-normal text-muted" title={worker.id}>
            {shortId(worker.id)}
          </code>
        </span>
        <span className="block truncate text-sm font-normal text-muted md:hidden">
          <SafeText>{`${backends} · ${shownVersion} · `}</SafeText>
          <span>{isRunning ? describeLoad([worker]) : "lost"}</span>
        </span>
      </th>
      <td className={cn(CELL, "whitespace-nowrap")}>
        <span className={cn("flex items-center gap-1.5 font-medium", isRunning ? "text-running" : "text-failed")}>
          {isRunning ? (
            <CirclePlay aria-hidden className="size-4 shrink-0" />
          ) : (
            <Unplug aria-hidden className="size-4 shrink-0" />
          )}
          {worker.state}
        </span>
      </td>
      <td className={cn(text, "min-w-20 text-right")}>{isRunning ? <Load worker={worker} /> : "–"}</td>
      <td className={cn(text, "max-w-64 truncate")} title={backends}>
        <SafeText>{backends}</SafeText>
      </td>
      <td className={text}>
        <SafeText>{shownVersion}</SafeText>
        {isOther && (
          <span className="text-waiting" title={`The server has ${version}.`}>
            {" "}
            differs
          </span>
        )}
      </td>
      <td className={cn(text, "min-w-28")}>
        <Time value={worker.started_at} />
      </td>
      <td className={cn(CELL, "min-w-28 whitespace-nowrap text-muted")}>
        <Time value={worker.last_seen_at} />
      </td>
    </tr>
  );
}

function Load({ worker }: { worker: Worker }) {
  const isFull = worker.max_turns !== null && worker.running_turns >= worker.max_turns;
  return (
    <span className={isFull ? "text-waiting" : undefined} title={isFull ? "It takes no more turns." : undefined}>
      {worker.max_turns === null ? worker.running_turns : `${worker.running_turns} of ${worker.max_turns}`}
    </span>
  );
}

const SHORT = 8;

/** The end of an id, which differs between the workers of a host. */
function shortId(id: string): string {
  return id.length > SHORT ? id.slice(-SHORT) : id;
}
