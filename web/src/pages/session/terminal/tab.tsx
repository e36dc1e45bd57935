// Terminal: a shell in the session's sandbox, for one who types and any who watch, beside the controls of the queue.
import { useQuery } from "@tanstack/react-query";
import { Eye, Keyboard, LogOut, PlugZap, Search, SquareTerminal, TriangleAlert, X } from "lucide-react";
import { Suspense, useRef, useState } from "react";

import { useActions } from "@/actions/use-actions";
import { api } from "@/api/client";
import type { Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { Skeleton } from "@/design/components/skeleton";
import { showToast } from "@/design/components/toast";
import { cn } from "@/design/classes";
import { SafeText } from "@/design/text/text";
import { lazyPart } from "@/frame/lazy-part";
import { hasEnded } from "../steps/model";
import { useRefusal } from "../steps/permission";
import { PlaybackBar } from "../steps/playback";
import { stepsQuery } from "../steps/queries";
import { CloseDialog } from "./close-dialog";
import { describeTerminal, type TerminalState } from "./describe";
import { Recordings } from "./recordings";
import type { ScreenHandle } from "./screen";
import { SearchBar } from "./search-bar";
import { useTerminal } from "./use-terminal";

const Screen = lazyPart("The screen of the terminal", () => import("./screen"));

export default function TerminalTab({ session }: { session: Session }) {
  const screen = useRef<ScreenHandle | null>(null);
  const leaveTo = useRef<HTMLDivElement>(null);
  const [isReady, setReady] = useState(false);
  const [isSearching, setSearching] = useState(false);
  const [isClosing, setClosing] = useState(false);
  const [isOpening, setOpening] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const refusal = useRefusal(session);
  const { data: steps = [], refetch } = useQuery(stepsQuery(session.id));
  const terminal = useTerminal(session.id, screen, isReady, refusal === null);
  const { mode, status, canType, setMode } = terminal;

  const step = steps.find((one) => one.kind === "terminal" && !hasEnded(one));
  const running = steps.find((one) => one.state === "running");
  const command = running?.["terminal"] === true ? running : undefined;
  const hasProgram = status?.programId != null;
  const state = describeTerminal({
    mode,
    status,
    step,
    command,
    hasRunningTurn: running !== undefined && running !== step,
    refusal,
  });
  const canOpen = refusal === null && step === undefined && !hasProgram && mode !== "detached" && !isOpening;

  async function open(): Promise<void> {
    setOpening(true);
    setError(null);
    try {
      await api.POST("/v1/sessions/{session_id}/terminal", { params: { path: { session_id: session.id } } });
      setMode("type");
    } catch (failure) {
      setError(failure);
    } finally {
      setOpening(false);
      void refetch();
    }
  }
  async function withdraw(): Promise<void> {
    if (step === undefined) {
      return;
    }
    try {
      await api.DELETE("/v1/sessions/{session_id}/steps/{step_id}", {
        params: { path: { session_id: session.id, step_id: step.id } },
      });
    } catch (failure) {
      setError(failure);
    } finally {
      void refetch();
    }
  }
  function leave(): void {
    leaveTo.current?.focus();
    showToast({ title: "You left the terminal", description: "It stays open. Press W to type again.", timeout: 3_000 });
  }
  const search = (): void => {
    setSearching(true);
  };
  const detach = (): void => {
    setMode("detached");
  };
  const watch = (): void => {
    setMode("watch");
  };
  const type = (): void => {
    if (mode === "type") {
      screen.current?.focus();
    } else {
      setMode("type");
    }
  };
  const close = (): void => {
    setClosing(true);
  };
  useActions({
    ...(canOpen ? { "session.open-terminal": () => void open() } : {}),
    ...(mode === "detached" ? { "session.attach-terminal": watch } : { "session.detach-terminal": detach }),
    ...(mode === "detached" ? {} : { "session.search-terminal": search }),
    ...(hasProgram && refusal === null ? { "session.type-in-terminal": type } : {}),
    ...(hasProgram && mode === "type" ? { "session.watch-terminal": watch } : {}),
    ...(step?.state === "running" && refusal === null ? { "session.close-terminal": close } : {}),
  });

  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <PlaybackBar session={session} refusal={refusal} isQuiet={canOpen} />
      <div ref={leaveTo} tabIndex={-1} className="flex shrink-0 flex-wrap items-center gap-2 border-b px-4 py-2">
        <Summary state={state} />
        <span className="flex flex-wrap gap-2 max-md:w-full">
          {hasProgram && refusal === null && mode === "watch" && (
            <Button shortcut="w" onClick={type}>
              <Keyboard aria-hidden /> Type
            </Button>
          )}
          {hasProgram && mode === "type" && (
            <Button onClick={watch}>
              <Eye aria-hidden /> Only watch
            </Button>
          )}
          {mode !== "detached" && (
            <Button variant="quiet" onClick={search}>
              <Search aria-hidden /> <span className="max-md:sr-only">Search</span>
            </Button>
          )}
          {mode === "detached" ? (
            <Button onClick={watch}>
              <PlugZap aria-hidden /> Return
            </Button>
          ) : (
            hasProgram && (
              <Button variant="quiet" onClick={detach}>
                <LogOut aria-hidden /> <span className="max-md:sr-only">Detach</span>
              </Button>
            )
          )}
          {step?.state === "running" && refusal === null && (
            <Button variant="quiet" onClick={close}>
              <X aria-hidden /> <span className="max-md:sr-only">Close the shell</span>
            </Button>
          )}
          {step?.state === "pending" && refusal === null && (
            <Button onClick={() => void withdraw()}>Do not open it</Button>
          )}
          {!hasProgram && step === undefined && mode !== "detached" && (
            <Button
              variant="primary"
              shortcut="s"
              disabled={!canOpen}
              title={refusal ?? undefined}
              onClick={() => void open()}
            >
              <SquareTerminal aria-hidden /> Open a shell
            </Button>
          )}
        </span>
      </div>
      {error !== null && <ErrorPanel className="m-4" title="The terminal cannot be opened" error={error} />}
      {status?.warning != null && (
        <p role="alert" className="flex items-center gap-2 bg-waiting-soft px-4 py-2 text-waiting">
          <TriangleAlert aria-hidden className="size-4 shrink-0" />
          <span className="flex-1">{status.warning}</span>
          <Button size="sm" onClick={terminal.dismissWarning}>
            Understood
          </Button>
        </p>
      )}
      {isSearching && (
        <SearchBar
          onFind={(text, direction) => screen.current?.find(text, direction) ?? false}
          onClose={() => {
            setSearching(false);
            screen.current?.focus();
          }}
        />
      )}
      <Suspense fallback={<Skeleton className="m-4 flex-1" />}>
        <Screen
          ref={screen}
          onReady={() => {
            setReady(true);
          }}
          canType={canType}
          size={status?.size ?? null}
          onType={terminal.type}
          onResize={terminal.resize}
          onLeave={leave}
        />
      </Suspense>
      <Recordings sessionId={session.id} />
      {isClosing && (
        <CloseDialog
          sessionId={session.id}
          onClose={() => {
            setClosing(false);
          }}
        />
      )}
    </div>
  );
}

const TONES: Record<TerminalState["tone"], string> = {
  open: "bg-success",
  waiting: "bg-waiting",
  closed: "bg-faint",
  problem: "bg-failed",
};

function Summary({ state }: { state: TerminalState }) {
  return (
    <p role="status" aria-label="Terminal" className="flex min-w-0 flex-1 basis-72 items-baseline gap-2">
      <span aria-hidden className={cn("size-2 shrink-0 self-center rounded-full", TONES[state.tone])} />
      <span className="shrink-0 font-medium">{state.title}</span>
      <SafeText className="min-w-0 text-muted">{state.detail}</SafeText>
    </p>
  );
}
