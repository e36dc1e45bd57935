// Follows one session: its events, once each and in order, and the text that is still being generated.
import { useEffect, useEffectEvent, useState } from "react";

import { EventStream, type Frame, type StreamState } from "./event-stream";

export interface SessionEvent {
  id: string;
  type: string;
  [field: string]: unknown;
}

export interface SessionFrame {
  /** The position in the session's log. Previews have that of the last event before them. */
  position: number;
  /** How many characters of the preview the client has with this frame. Null: not a preview. */
  offset: number | null;
  kind: "event" | "preview_start" | "preview_delta";
  data: SessionEvent;
}

export interface SessionStreamOptions {
  /** Start after this position. 0 is the whole log. */
  after: number;
  onFrame: (frame: SessionFrame) => void;
  onState?: (state: StreamState) => void;
  onReset?: () => void;
}

const KINDS: Record<string, SessionFrame["kind"]> = { event_start: "preview_start", event_delta: "preview_delta" };

/** The id of a frame is `42`, or `42.sevt_….17` inside a preview. */
export function parsePosition(id: string): number {
  return Number.parseInt(id, 10);
}

function parseOffset(id: string | null): number | null {
  const offset = id?.split(".")[2];
  return offset === undefined ? null : Number.parseInt(offset, 10);
}

/** Turns frames into those of a session, and drops events that were delivered before. */
export function createFrameFilter(after: number, onFrame: (frame: SessionFrame) => void): (frame: Frame) => void {
  let delivered = after;
  return (frame) => {
    const position = frame.id === null ? delivered : parsePosition(frame.id);
    const kind = KINDS[frame.event] ?? "event";
    if (kind === "event") {
      if (position <= delivered) {
        return;
      }
      delivered = position;
    }
    onFrame({ position, offset: parseOffset(frame.id), kind, data: frame.data as SessionEvent });
  };
}

export function openSessionStream(sessionId: string, options: SessionStreamOptions): EventStream {
  const query = new URLSearchParams({ extensions: "true" });
  query.append("event_deltas[]", "agent.message");
  query.append("event_deltas[]", "agent.thinking");
  const stream = new EventStream({
    url: `/v1/sessions/${encodeURIComponent(sessionId)}/events/stream?${query.toString()}`,
    after: String(options.after),
    onFrame: createFrameFilter(options.after, options.onFrame),
    ...(options.onState === undefined ? {} : { onState: options.onState }),
    ...(options.onReset === undefined ? {} : { onReset: options.onReset }),
  });
  stream.open();
  return stream;
}

/** Follows a session while the component is mounted. `after` is read once per session; null waits. */
export function useSessionStream(
  sessionId: string,
  after: number | null,
  handlers: Pick<SessionStreamOptions, "onFrame" | "onReset">,
): StreamState {
  const [state, setState] = useState<StreamState>("catching_up");
  const onFrame = useEffectEvent(handlers.onFrame);
  const onReset = useEffectEvent(() => handlers.onReset?.());
  const isReady = after !== null;
  const start = useEffectEvent(() => after ?? 0);
  useEffect(() => {
    if (!isReady) {
      return undefined;
    }
    const stream = openSessionStream(sessionId, {
      after: start(),
      onFrame: (frame) => {
        onFrame(frame);
      },
      onReset: () => {
        onReset();
      },
      onState: setState,
    });
    return () => {
      stream.close();
    };
  }, [sessionId, isReady]);
  return state;
}
