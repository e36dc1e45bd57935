// Runs what a person does with an entry: with a message about what happened, and after a confirmation where it needs one.
import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { showToast } from "@/design/components/toast";
import type { Confirmation } from "@/pages/session/confirm-dialog";

interface Command<T> {
  send: () => Promise<T>;
  /** The title of the message if it fails, such as "“ci” was not archived". */
  failure: string;
  done: (result: T) => void;
  /** The id of the entry that it deletes: what is known about it is not read again. */
  removedId?: string;
}

export interface Commands {
  perform: <T>(command: Command<T>) => Promise<void>;
  /** Asks first. */
  confirm: <T>(question: Omit<Confirmation, "run">, command: Command<T>) => void;
  confirmation: Confirmation | null;
  closeConfirmation: () => void;
  isBusy: boolean;
}

/** `key`: what a successful command makes outdated. */
export function useCommands(key: QueryKey): Commands {
  const queries = useQueryClient();
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const [isBusy, setBusy] = useState(false);

  async function perform<T>({ send, failure, done, removedId }: Command<T>): Promise<void> {
    setBusy(true);
    try {
      done(await send());
      await queries.invalidateQueries({
        queryKey: key,
        predicate: ({ queryKey }) => removedId === undefined || !JSON.stringify(queryKey).includes(removedId),
      });
    } catch (error) {
      showToast({ title: failure, description: error instanceof Error ? error.message : "", tone: "failed" });
    } finally {
      setBusy(false);
    }
  }
  return {
    perform,
    confirm: (question, command) => {
      setConfirmation({ ...question, run: () => perform(command) });
    },
    confirmation,
    closeConfirmation: () => {
      setConfirmation(null);
    },
    isBusy,
  };
}
