// What a person can do with a schedule: run it now, pause, resume, and archive it after a confirmation.
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { keys } from "@/api/keys";
import {
  archiveSchedule,
  pauseSchedule,
  resumeSchedule,
  runSchedule,
  type Schedule,
  type ScheduleRun,
} from "@/api/queries/schedules";
import { showToast } from "@/design/components/toast";
import type { Confirmation } from "@/pages/session/confirm-dialog";

export interface ScheduleCommands {
  run: (schedule: Schedule) => void;
  togglePause: (schedule: Schedule) => void;
  archive: (schedule: Schedule) => void;
  confirmation: Confirmation | null;
  closeConfirmation: () => void;
  isBusy: boolean;
}

export function useScheduleCommands(): ScheduleCommands {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const [isBusy, setBusy] = useState(false);

  async function perform<T>(work: () => Promise<T>, failure: string, onDone: (result: T) => void): Promise<void> {
    setBusy(true);
    try {
      onDone(await work());
      await queries.invalidateQueries({ queryKey: keys.deployments });
    } catch (error) {
      showToast({ title: failure, description: error instanceof Error ? error.message : "", tone: "failed" });
    } finally {
      setBusy(false);
    }
  }
  function announce(run: ScheduleRun): void {
    const { session_id: sessionId } = run;
    if (sessionId === null) {
      showToast({ title: "The run created no session", description: run.error?.message ?? "", tone: "failed" });
      return;
    }
    showToast({
      title: "Session started",
      action: {
        label: "Open",
        onClick: () => void navigate({ to: "/sessions/$sessionId", params: { sessionId } }),
      },
    });
  }
  return {
    run: (schedule) => void perform(() => runSchedule(schedule.id), `“${schedule.name}” was not started`, announce),
    togglePause: (schedule) => {
      const isPaused = schedule.status === "paused";
      void perform(
        () => (isPaused ? resumeSchedule(schedule.id) : pauseSchedule(schedule.id)),
        `“${schedule.name}” was not ${isPaused ? "resumed" : "paused"}`,
        () =>
          showToast(
            isPaused
              ? { title: "Schedule resumed", description: "It runs in your name from now on." }
              : { title: "Schedule paused", description: "You can still run it on request." },
          ),
      );
    },
    archive: (schedule) => {
      setConfirmation({
        title: `Archive “${schedule.name}”?`,
        text: "The schedule ends for good and cannot be resumed. Its sessions and the list of its runs stay.",
        button: "Archive",
        run: () =>
          perform(
            () => archiveSchedule(schedule.id),
            `“${schedule.name}” was not archived`,
            () => showToast({ title: "Schedule archived", description: schedule.name }),
          ),
      });
    },
    confirmation,
    closeConfirmation: () => {
      setConfirmation(null);
    },
    isBusy,
  };
}
