// Runs a change: reads the lists again afterwards, and shows the server's message if it was refused.
import { type QueryKey, useQueryClient } from "@tanstack/react-query";

import { ApiError } from "@/api/errors";
import { showToast } from "@/design/components/toast";

const REFUSAL_MS = 10_000;

type Change = <T>(work: () => Promise<T>, failure: string, onDone: (result: T) => void) => Promise<void>;

export function useChange(...outdated: readonly QueryKey[]): Change {
  const queries = useQueryClient();
  return async (work, failure, onDone) => {
    try {
      onDone(await work());
    } catch (error) {
      showToast({ title: failure, description: describeError(error), tone: "failed", timeout: REFUSAL_MS });
    }
    // Also after a refusal: what is shown may be outdated.
    await Promise.all(outdated.map((queryKey) => queries.invalidateQueries({ queryKey })));
  };
}

/** What happened and what to do, as the server says it. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  const help = error instanceof ApiError ? error.help : null;
  return help === null ? error.message : `${error.message} ${help}`;
}
