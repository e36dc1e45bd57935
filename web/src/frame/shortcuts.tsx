// Passes pressed keys to the actions of the page that they were meant for.
import { useRouter, useRouterState } from "@tanstack/react-router";
import { useEffect, useState } from "react";

import { ShortcutHandler } from "../actions/shortcuts";

export function Shortcuts(): null {
  const router = useRouter();
  const shownKey = useRouterState({ select: ({ resolvedLocation }) => resolvedLocation?.state.__TSR_key });
  const [shortcuts] = useState(
    () =>
      new ShortcutHandler(
        () => router.history.location.state.__TSR_key !== router.stores.resolvedLocation.get()?.state.__TSR_key,
      ),
  );

  useEffect(() => {
    function onKeyDown(event: KeyboardEvent): void {
      if (shortcuts.handle(event)) {
        event.preventDefault();
      }
    }
    document.addEventListener("keydown", onKeyDown);
    return () => {
      document.removeEventListener("keydown", onKeyDown);
    };
  }, [shortcuts]);

  useEffect(() => {
    shortcuts.runWaiting(performance.now());
  }, [shortcuts, shownKey]);
  return null;
}
