// Changes the queue: at once in the page where that is safe, and taken back with the reason if the server refuses.
import { useQueryClient } from "@tanstack/react-query";

import { api, required } from "@/api/client";
import { ApiError } from "@/api/errors";
import type { components } from "@/api/schema";
import { showToast } from "@/design/components/toast";
import { moveBefore, type Playback, type Step, type StepKind, stepLabel } from "./model";
import { playbackKey, stepsKey } from "./queries";
import { noteOwnMove } from "./other-windows";

export type PlaybackAction = "play" | "pause" | "next";
/** The generated types require every field that has a default, so these bodies have types of their own. */
export type StepInput = Record<string, unknown> & { kind: StepKind };
export type StepEdit = Record<string, unknown>;
export interface StepOutcome {
  status: components["schemas"]["SubmitResult"]["status"];
  stdout: string;
}

export function messageOf(error: unknown): string {
  if (error instanceof ApiError && error.help !== null) {
    return `${error.message} ${error.help}`;
  }
  return error instanceof Error ? error.message : String(error);
}

export function useStepChanges(sessionId: string) {
  const queries = useQueryClient();
  const path = { session_id: sessionId };

  function refresh(): void {
    void queries.invalidateQueries({ queryKey: stepsKey(sessionId) });
    void queries.invalidateQueries({ queryKey: playbackKey(sessionId) });
  }

  /** Patches the list, asks the server, and reads the list again. Returns whether the server agreed. */
  async function change(
    title: string,
    patch: ((steps: readonly Step[]) => Step[]) | null,
    send: () => Promise<unknown>,
  ): Promise<boolean> {
    if (patch !== null) {
      await queries.cancelQueries({ queryKey: stepsKey(sessionId) });
      queries.setQueryData<Step[]>(stepsKey(sessionId), (steps) => (steps === undefined ? undefined : patch(steps)));
    }
    try {
      await send();
      return true;
    } catch (error) {
      showToast({ title, description: messageOf(error), tone: "failed", timeout: 8_000 });
      return false;
    } finally {
      refresh();
    }
  }

  function add(steps: StepInput[], before: string | null): Promise<Step[]> {
    return api
      .POST("/v1/sessions/{session_id}/steps", { params: { path }, body: { steps, before } as never })
      .then((result) => required(result).data)
      .finally(refresh);
  }

  function edit(step: Step, update: StepEdit): Promise<unknown> {
    return api
      .POST("/v1/sessions/{session_id}/steps/{step_id}", {
        params: { path: { ...path, step_id: step.id } },
        body: update as never,
      })
      .finally(refresh);
  }

  function move(step: Step, before: string | null): Promise<boolean> {
    noteOwnMove(step.id);
    return change(
      `“${stepLabel(step)}” was not moved`,
      (steps) => moveBefore(steps, step.id, before),
      () =>
        api.POST("/v1/sessions/{session_id}/steps/{step_id}/move", {
          params: { path: { ...path, step_id: step.id } },
          body: { before },
        }),
    );
  }

  /** Removes the step. `next` is the pending step behind it, before which "Undo" puts a copy. */
  async function remove(step: Step, next: Step | undefined): Promise<void> {
    const done = await change(
      `“${stepLabel(step)}” was not removed`,
      (steps) => steps.map((one) => (one.id === step.id ? { ...one, state: "cancelled" } : one)),
      () =>
        api.DELETE("/v1/sessions/{session_id}/steps/{step_id}", { params: { path: { ...path, step_id: step.id } } }),
    );
    if (done) {
      showToast({
        title: "Removed from the queue",
        description: stepLabel(step),
        action: { label: "Undo", onClick: () => void restore(step, next) },
      });
    }
  }

  async function restore(step: Step, next: Step | undefined): Promise<void> {
    await change("The step is not back", null, async () => {
      const copy = required(
        await api.POST("/v1/sessions/{session_id}/steps/{step_id}/retry", {
          params: { path: { ...path, step_id: step.id } },
          body: { play: false },
        }),
      );
      noteOwnMove(copy.id);
      await api.POST("/v1/sessions/{session_id}/steps/{step_id}/move", {
        params: { path: { ...path, step_id: copy.id } },
        body: { before: next?.id ?? null },
      });
    });
  }

  /** Adds a copy of a failed or cancelled step at the front of the queue. */
  function repeat(step: Step, { play = false }: { play?: boolean } = {}): Promise<boolean> {
    return change(`“${stepLabel(step)}” was not repeated`, null, () =>
      api.POST("/v1/sessions/{session_id}/steps/{step_id}/retry", {
        params: { path: { ...path, step_id: step.id } },
        body: { play },
      }),
    );
  }

  function submit(step: Step, outcome: StepOutcome): Promise<unknown> {
    return api
      .POST("/v1/sessions/{session_id}/steps/{step_id}/result", {
        params: { path: { ...path, step_id: step.id } },
        body: outcome as never,
      })
      .finally(refresh);
  }

  async function control(action: PlaybackAction): Promise<void> {
    await queries.cancelQueries({ queryKey: playbackKey(sessionId) });
    if (action !== "next") {
      queries.setQueryData<Playback>(playbackKey(sessionId), (playback) =>
        playback === undefined
          ? undefined
          : { ...playback, playing: action === "play", pause_reason: action === "play" ? null : "requested" },
      );
    }
    const titles = { play: "The queue does not play", pause: "The queue was not paused", next: "No step was started" };
    await change(titles[action], null, () => api.POST(`/v1/sessions/{session_id}/${action}`, { params: { path } }));
  }

  return { add, edit, move, remove, repeat, submit, control };
}

export type StepChanges = ReturnType<typeof useStepChanges>;
