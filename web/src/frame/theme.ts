// The theme: light, dark, or that of the system. `public/theme.js` sets it before the first paint.
import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark" | "system";
export const THEMES: readonly Theme[] = ["light", "dark", "system"];

const STORAGE_KEY = "footplate.theme";
const listeners = new Set<() => void>();
const systemDark = globalThis.matchMedia("(prefers-color-scheme: dark)");
let theme: Theme = readStored();

function readStored(): Theme {
  try {
    const stored = localStorage.getItem(STORAGE_KEY);
    return THEMES.find((one) => one === stored) ?? "system";
  } catch {
    return "system"; // storage is disabled
  }
}

function apply(): void {
  document.documentElement.dataset["theme"] = isDark() ? "dark" : "light";
  for (const listener of listeners) {
    listener();
  }
}

function isDark(): boolean {
  return theme === "dark" || (theme === "system" && systemDark.matches);
}

systemDark.addEventListener("change", apply);

export function setTheme(next: Theme): void {
  theme = next;
  try {
    localStorage.setItem(STORAGE_KEY, next);
  } catch {
    // The choice is then lost with the page.
  }
  apply();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, () => theme);
}

/** What is shown, for components that draw by themselves: terminal, charts, diffs. */
export function useIsDark(): boolean {
  return useSyncExternalStore(subscribe, isDark);
}
