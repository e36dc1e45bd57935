// What a person can do with a step, from its row and by key.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { useActions } from "@/actions/use-actions";
import type { Session } from "@/api/session-state";
import { useStepChanges } from "./changes";
import { isPending, isPlainPrompt, type Step, targetOf } from "./model";

export type StepDialog = { mode: "add"; before: Step | null } | { mode: "edit"; step: Step };

export function canEdit(step: Step): boolean {
  return (
    isPending(step) && !step.is_message && step.kind !== "terminal" && (step.kind !== "prompt" || isPlainPrompt(step))
  );
}

export function useStepCommands(session: Session, pending: readonly Step[], refusal: string | null) {
  const changes = useStepChanges(session.id);
  const [dialog, setDialog] = useState<StepDialog | null>(null);

  function moveTo(step: Step, index: number): void {
    const before = targetOf(pending, step.id, index);
    if (refusal === null && before !== undefined) {
      void changes.move(step, before);
    }
  }

  return {
    dialog,
    changes,
    closeDialog: () => {
      setDialog(null);
    },
    add: (before: Step | null) => {
      setDialog({ mode: "add", before });
    },
    edit: (step: Step) => {
      setDialog({ mode: "edit", step });
    },
    moveTo,
    moveBy: (step: Step, by: number) => {
      moveTo(step, pending.findIndex((one) => one.id === step.id) + by);
    },
    remove: (step: Step) => {
      void changes.remove(step, pending[pending.findIndex((one) => one.id === step.id) + 1]);
    },
    repeat: (step: Step) => {
      void changes.repeat(step);
    },
    submit: changes.submit,
  };
}

export type StepCommands = ReturnType<typeof useStepCommands>;

/** Offers the actions that are possible for the selected step. */
export function useSelectedStepActions(
  session: Session,
  selected: Step | undefined,
  steps: readonly Step[],
  refusal: string | null,
  commands: StepCommands,
): void {
  const navigate = useNavigate();
  const may = refusal === null;
  const canRepeat =
    selected !== undefined &&
    (selected.state === "failed" || selected.state === "cancelled") &&
    !steps.some((one) => one["retry_of"] === selected.id);
  useActions({
    ...(may
      ? {
          "session.add-step": () => {
            commands.add(null);
          },
        }
      : {}),
    ...(may && selected !== undefined && canEdit(selected)
      ? {
          "session.edit-step": () => {
            commands.edit(selected);
          },
        }
      : {}),
    ...(may && selected !== undefined && isPending(selected)
      ? {
          "session.remove-step": () => {
            commands.remove(selected);
          },
          "session.move-step-up": () => {
            commands.moveBy(selected, -1);
          },
          "session.move-step-down": () => {
            commands.moveBy(selected, 1);
          },
        }
      : {}),
    ...(may && canRepeat
      ? {
          "session.repeat-step": () => {
            commands.repeat(selected);
          },
        }
      : {}),
    ...(may && selected?.kind === "external" && selected.state === "running"
      ? {
          "session.submit-step-result": () => {
            document.getElementById(`result-${selected.id}`)?.focus();
          },
        }
      : {}),
    ...(selected?.turn_id == null
      ? {}
      : {
          "session.open-step-turn": () =>
            void navigate({
              to: "/sessions/$sessionId",
              params: { sessionId: session.id },
              search: { tab: "conversation", turn: selected.turn_id ?? "" },
            }),
        }),
  });
}
