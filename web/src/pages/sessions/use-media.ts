// Whether the window matches a media query, such as that of a phone.
import { useSyncExternalStore } from "react";

export const PHONE = "(width < 48rem)";

export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const media = globalThis.matchMedia(query);
      media.addEventListener("change", listener);
      return () => {
        media.removeEventListener("change", listener);
      };
    },
    () => globalThis.matchMedia(query).matches,
  );
}
