// The actions of this tab. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const stepsActions = defineActions([
  {
    id: "session.next-step",
    title: "Select the next step",
    scope: "session",
    shortcut: "j",
    isHidden: true,
    canRepeat: true,
  },
  {
    id: "session.previous-step",
    title: "Select the previous step",
    scope: "session",
    shortcut: "k",
    isHidden: true,
    canRepeat: true,
  },
  { id: "session.open-step", title: "Show or hide the step", scope: "session", shortcut: "enter", isHidden: true },
  { id: "session.play-queue", title: "Play the queue", scope: "session", keywords: ["continue", "resume", "steps"] },
  { id: "session.pause-queue", title: "Pause the queue", scope: "session", keywords: ["stop", "steps"] },
  {
    id: "session.run-next-step",
    title: "Run the next step only",
    scope: "session",
    shortcut: ".",
    keywords: ["single", "queue"],
  },
  {
    id: "session.add-step",
    title: "Add a step",
    scope: "session",
    shortcut: "a",
    keywords: ["queue", "shell", "prompt"],
  },
  { id: "session.edit-step", title: "Edit the step", scope: "session", shortcut: "e" },
  {
    id: "session.remove-step",
    title: "Remove the step from the queue",
    scope: "session",
    shortcut: "x",
    keywords: ["delete"],
  },
  { id: "session.move-step-up", title: "Move the step up", scope: "session", shortcut: "alt+up", canRepeat: true },
  {
    id: "session.move-step-down",
    title: "Move the step down",
    scope: "session",
    shortcut: "alt+down",
    canRepeat: true,
  },
  {
    id: "session.repeat-step",
    title: "Repeat the step",
    scope: "session",
    shortcut: "t",
    keywords: ["retry", "again"],
  },
  {
    id: "session.submit-step-result",
    title: "Submit the result of the step",
    scope: "session",
    shortcut: "u",
    keywords: ["external"],
  },
  { id: "session.open-step-turn", title: "Open the turn of the step", scope: "session", shortcut: "o" },
]);
