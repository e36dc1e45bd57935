// Keeps the draft while other pages are open and after a reload, and remembers the last choices.
import { useSyncExternalStore } from "react";

import { type Draft, EMPTY_DRAFT } from "./draft";

const listeners = new Set<() => void>();
let owner = "";
let draft: Draft = EMPTY_DRAFT;

const keyOf = (id: string): string => `footplate.new-session.${id}`;

function read(id: string): Draft {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(keyOf(id)) ?? "{}");
    return { ...EMPTY_DRAFT, ...(stored as Partial<Draft>) };
  } catch {
    return EMPTY_DRAFT; // storage is disabled, or has something else
  }
}

/** The draft of this caller. */
export function useDraft(id: string): Draft {
  if (owner !== id) {
    owner = id;
    draft = read(id);
  }
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => draft,
  );
}

export function getDraft(): Draft {
  return draft;
}

export function changeDraft(change: Partial<Draft>): void {
  draft = { ...draft, ...change };
  try {
    localStorage.setItem(keyOf(owner), JSON.stringify(draft));
  } catch {
    // The draft then lasts as long as the page.
  }
  for (const listener of listeners) {
    listener();
  }
}

/** After the session was started: the task and its attempts go, the other choices stay for the next one. */
export function clearTask(): void {
  changeDraft({ prompt: "", title: "", attempts: 1, check: "", attachments: [], others: {} });
}
