// Tries again when the network is back, or the server can be reached again.
import { useEffect, useEffectEvent } from "react";

import { FEED_LIVE, onFeedChange } from "../api/feed";

export function useRetryWhenReachable(isFailed: boolean, retry: () => void): void {
  const again = useEffectEvent(retry);
  useEffect(() => {
    if (!isFailed) {
      return undefined;
    }
    const onOnline = (): void => {
      again();
    };
    globalThis.addEventListener("online", onOnline);
    const stop = onFeedChange((change) => {
      if (change.type === FEED_LIVE) {
        again();
      }
    });
    return () => {
      globalThis.removeEventListener("online", onOnline);
      stop();
    };
  }, [isFailed]);
}
