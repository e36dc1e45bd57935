// Connects the screen to the terminal of a session, and remembers which terminals this window was typing in.
import { type RefObject, useEffect, useRef, useState } from "react";

import { api } from "@/api/client";
import { ApiError } from "@/api/errors";
import { type LinkStatus, TerminalLink, terminalUrl } from "./link";
import type { ScreenHandle } from "./screen";

export type TerminalMode = "watch" | "type" | "detached";

/** Whoever returns to the tab continues in the same mode. */
const lastModes = new Map<string, TerminalMode>();

async function findRefusal(sessionId: string): Promise<string | null> {
  try {
    await api.GET("/v1/sessions/{session_id}", { params: { path: { session_id: sessionId } } });
    return null;
  } catch (error) {
    return error instanceof ApiError && !error.isTemporary ? error.message : null;
  }
}

export function useTerminal(
  sessionId: string,
  screen: RefObject<ScreenHandle | null>,
  isReady: boolean,
  mayType: boolean,
) {
  const [mode, setModeState] = useState<TerminalMode>(() => lastModes.get(sessionId) ?? "watch");
  const [status, setStatus] = useState<LinkStatus | null>(null);
  const link = useRef<TerminalLink | null>(null);
  const types = mode === "type" && mayType;

  useEffect(() => {
    if (!isReady || mode === "detached") {
      return undefined;
    }
    const opened = new TerminalLink({
      url: terminalUrl(sessionId, types),
      onOutput: (bytes) => screen.current?.write(bytes),
      onRestart: () => screen.current?.clear(),
      onStatus: setStatus,
      findRefusal: () => findRefusal(sessionId),
    });
    link.current = opened;
    opened.open();
    return () => {
      link.current = null;
      opened.close();
      setStatus(null);
    };
  }, [sessionId, types, mode, isReady, screen]);

  const canType = status?.canType === true && status.programId !== null;
  const programId = status?.programId ?? null;
  const isAttached = status?.state === "attached";
  // Whoever starts to type decides on the size.
  useEffect(() => {
    if (isAttached && canType && programId !== null) {
      const size = screen.current?.fit();
      if (size !== undefined) {
        link.current?.resize(size.columns, size.rows);
      }
      screen.current?.focus();
    }
  }, [isAttached, canType, programId, screen]);

  return {
    mode,
    status,
    canType,
    setMode: (next: TerminalMode) => {
      lastModes.set(sessionId, next);
      setModeState(next);
    },
    type: (text: string) => link.current?.type(text) ?? false,
    resize: (columns: number, rows: number) => link.current?.resize(columns, rows),
    dismissWarning: () => link.current?.dismissWarning(),
  };
}
