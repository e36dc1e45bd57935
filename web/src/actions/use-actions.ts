// Offers actions while a component is mounted.
import { useEffect, useEffectEvent, useSyncExternalStore } from "react";

import {
  type ActionDefinition,
  actionsVersion,
  isAvailable,
  listActions,
  offerAction,
  subscribeToActions,
} from "./registry";

/** `useAction("inbox.allow", allow, { isEnabled: item !== null })`. The latest handler runs; it need not be stable. */
export function useAction(id: string, handler: () => void, { isEnabled = true }: { isEnabled?: boolean } = {}): void {
  const run = useEffectEvent(handler);
  useEffect(() => {
    if (!isEnabled) {
      return undefined;
    }
    return offerAction(id, () => {
      run();
    });
  }, [id, isEnabled]);
}

/** Offers several actions at once. */
export function useActions(map: Readonly<Record<string, () => void>>): void {
  const run = useEffectEvent((id: string) => map[id]?.());
  const ids = Object.keys(map).sort().join(" ");
  useEffect(() => {
    const ends = ids
      .split(" ")
      .filter((id) => id !== "")
      .map((id) =>
        offerAction(id, () => {
          run(id);
        }),
      );
    return () => {
      for (const end of ends) {
        end();
      }
    };
  }, [ids]);
}

/** The actions that a component offers now. */
export function useAvailableActions(): ActionDefinition[] {
  useSyncExternalStore(subscribeToActions, actionsVersion);
  return listActions().filter((action) => isAvailable(action.id));
}
