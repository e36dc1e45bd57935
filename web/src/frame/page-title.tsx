// The title of the open page, which the top bar and the browser's tab show.
import { useEffect, useSyncExternalStore } from "react";

let title = "Footplate";
const listeners = new Set<() => void>();

/** Call it once per page. */
export function usePageTitle(next: string): void {
  useEffect(() => {
    title = next;
    document.title = `${next} · Footplate`;
    for (const listener of listeners) {
      listener();
    }
  }, [next]);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useCurrentPageTitle(): string {
  return useSyncExternalStore(subscribe, () => title);
}
