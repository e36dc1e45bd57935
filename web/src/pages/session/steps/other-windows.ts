// Says so when another window moves a step, because the list changes under the reader's eyes.
import { useEffect, useEffectEvent } from "react";

import { onFeedChange } from "@/api/feed";
import { showToast } from "@/design/components/toast";
import { type Step, stepLabel } from "./model";

/** The feed reports an own move within this time, or not at all. */
const OWN_MS = 5_000;
const ownMoves = new Map<string, number>();

export function noteOwnMove(stepId: string): void {
  ownMoves.set(stepId, Date.now());
}

function isOwnMove(stepId: string): boolean {
  const at = ownMoves.get(stepId);
  return at !== undefined && Date.now() - at < OWN_MS;
}

export function useMovesOfOthers(sessionId: string, steps: readonly Step[]): void {
  const note = useEffectEvent((stepId: string) => {
    const step = steps.find((one) => one.id === stepId);
    if (step !== undefined && !isOwnMove(stepId)) {
      showToast({ title: "The queue was reordered in another window", description: stepLabel(step), timeout: 4_000 });
    }
  });
  useEffect(
    () =>
      onFeedChange((change) => {
        const stepId = "step_id" in change ? change.step_id : undefined;
        if (change.type === "step.moved" && change.session_id === sessionId && typeof stepId === "string") {
          note(stepId);
        }
      }),
    [sessionId],
  );
}
