// What an administrator can do with an API key: revoke it or replace its secret, each after a confirmation.
import { useState } from "react";

import type { Principal } from "@/api/contract";
import { keys } from "@/api/keys";
import { type ApiKey, type NewApiKey, revokeApiKey, rotateApiKey } from "@/api/queries/people";
import { showToast } from "@/design/components/toast";
import type { Confirmation } from "@/pages/session/confirm-dialog";

import { useChange } from "../people/use-change";
import { describeRevocation } from "./model";

export interface KeyCommands {
  revoke: (key: ApiKey) => void;
  rotate: (key: ApiKey) => void;
  confirmation: Confirmation | null;
  closeConfirmation: () => void;
}

export function useKeyCommands(me: Principal, onRotated: (key: NewApiKey) => void): KeyCommands {
  const change = useChange(keys.apiKeys);
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  return {
    revoke: (key) => {
      setConfirmation({
        title: `Revoke “${key.name}”?`,
        text: describeRevocation(key, key.id === me.api_key_id),
        button: "Revoke",
        run: () =>
          change(
            () => revokeApiKey(key.id),
            `“${key.name}” was not revoked`,
            () => showToast({ title: "API key revoked", description: key.name }),
          ),
      });
    },
    rotate: (key) => {
      setConfirmation({
        title: `Replace the secret of “${key.name}”?`,
        text: "The new secret is shown once. The old one stops working within 5 seconds, and its open streams end. Everything else about the key stays.",
        button: "Replace the secret",
        run: () => change(() => rotateApiKey(key.id), `The secret of “${key.name}” was not replaced`, onRotated),
      });
    },
    confirmation,
    closeConfirmation: () => {
      setConfirmation(null);
    },
  };
}
