// Whether the queue plays, what is next, and the buttons that change it. The terminal shows it too.
import { useQuery } from "@tanstack/react-query";
import { Pause, Play, SkipForward } from "lucide-react";

import { useActions } from "@/actions/use-actions";
import type { Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { SafeText } from "@/design/text/text";
import { cn } from "@/design/classes";
import { useStepChanges } from "./changes";
import { describePause, type Playback, splitQueue, type Step, stepLabel } from "./model";
import { playbackQuery, stepsQuery } from "./queries";

interface Props {
  session: Session;
  /** Why the caller cannot change the queue. Null: nothing prevents it. */
  refusal: string | null;
  /** Another button of the view is the primary one. */
  isQuiet?: boolean;
  className?: string;
}

export function PlaybackBar({ session, refusal, isQuiet = false, className }: Props) {
  const { data: steps = [] } = useQuery(stepsQuery(session.id));
  const { data: playback } = useQuery(playbackQuery(session.id));
  const { control } = useStepChanges(session.id);
  const { running, pending } = splitQueue(steps);
  const [next] = pending;
  const isBusy = pending.length > 0 || running.some((step) => step.kind !== "terminal");
  const canChange = refusal === null && playback !== undefined;
  const isPlaying = playback?.playing ?? true;
  const play = (): void => void control("play");
  const pause = (): void => void control("pause");
  const runNext = (): void => void control("next");
  useActions({
    ...(canChange && !isPlaying ? { "session.play-queue": play } : {}),
    ...(canChange && isPlaying ? { "session.pause-queue": pause } : {}),
    ...(canChange && !isPlaying && next !== undefined ? { "session.run-next-step": runNext } : {}),
  });
  return (
    <section
      aria-label="Playback"
      className={cn("flex min-h-12 flex-wrap items-center gap-x-3 gap-y-2 border-b px-4 py-2", className)}
    >
      <p className="min-w-0 flex-1 basis-60" role="status">
        {playback !== undefined && (
          <Summary playback={playback} running={running[0]} next={next} count={pending.length} />
        )}
      </p>
      <div className="flex gap-2 max-md:w-full max-md:[&>button]:h-11 max-md:[&>button]:flex-1">
        {!isPlaying && next !== undefined && (
          <Button shortcut="." disabled={!canChange} onClick={runNext} title={refusal ?? undefined}>
            <SkipForward aria-hidden /> Next
          </Button>
        )}
        {isPlaying ? (
          <Button
            variant={!isQuiet && isBusy ? "primary" : "secondary"}
            disabled={!canChange}
            onClick={pause}
            title={refusal ?? undefined}
          >
            <Pause aria-hidden /> Pause
          </Button>
        ) : (
          <Button
            variant={isQuiet ? "secondary" : "primary"}
            disabled={!canChange}
            onClick={play}
            title={refusal ?? undefined}
          >
            <Play aria-hidden /> Play
          </Button>
        )}
      </div>
      {refusal !== null && <p className="w-full text-sm text-muted">{refusal}</p>}
    </section>
  );
}

interface SummaryProps {
  playback: Playback;
  running: Step | undefined;
  next: Step | undefined;
  count: number;
}

function Summary({ playback, running, next, count }: SummaryProps) {
  const waiting = count === 0 ? "nothing waits" : count === 1 ? "1 step waits" : `${count} steps wait`;
  if (!playback.playing) {
    return (
      <>
        <span className="font-medium">
          {playback.pause_reason === "requested" && running === undefined
            ? "Paused. No step starts."
            : describePause(playback)}
        </span>{" "}
        <span className="text-muted">
          {running !== undefined && <>Runs now: {<Name step={running} />}. </>}
          {next !== undefined && <>Next: {<Name step={next} />}, </>}
          {waiting}
        </span>
      </>
    );
  }
  if (running?.kind === "terminal") {
    return (
      <>
        <span className="font-medium">The queue waits until the shell is closed</span>{" "}
        <span className="text-muted">{waiting}</span>
      </>
    );
  }
  return running === undefined ? (
    <>
      <span className="font-medium">Playing</span>
      <span className="text-muted">, {waiting}</span>
    </>
  ) : (
    <>
      <span className="font-medium">Playing</span>{" "}
      <span className="text-muted">
        <Name step={running} />, {waiting}
      </span>
    </>
  );
}

function Name({ step }: { step: Step }) {
  return <SafeText className="text-text">{stepLabel(step)}</SafeText>;
}
