// What a person can do with an endpoint: test, pause, enable, delete, and send a delivery again.
import { keys } from "@/api/keys";
import {
  deleteEndpoint,
  replayDelivery,
  testEndpoint,
  updateEndpoint,
  type WebhookDelivery,
  type WebhookEndpoint,
} from "@/api/queries/webhooks";
import { showToast } from "@/design/components/toast";

import { type Commands, useCommands } from "../work/use-commands";

export interface WebhookCommands extends Pick<Commands, "confirmation" | "closeConfirmation" | "isBusy"> {
  test: (endpoint: WebhookEndpoint) => void;
  togglePause: (endpoint: WebhookEndpoint) => void;
  remove: (endpoint: WebhookEndpoint, onRemoved: () => void) => void;
  replay: (delivery: WebhookDelivery) => void;
}

export function useWebhookCommands(): WebhookCommands {
  const { perform, confirm, confirmation, closeConfirmation, isBusy } = useCommands(keys.webhooks);
  return {
    test: ({ id }) =>
      void perform({
        send: () => testEndpoint(id),
        failure: "The test event was not sent",
        done: () => showToast({ title: "Test event created", description: "It is the first of the deliveries." }),
      }),
    togglePause: ({ id, disabled_at: disabledAt }) => {
      const isPaused = disabledAt !== null;
      void perform({
        send: () => updateEndpoint(id, { disabled: !isPaused }),
        failure: `The webhook was not ${isPaused ? "enabled" : "paused"}`,
        done: () =>
          showToast(
            isPaused
              ? { title: "Webhook enabled", description: "It receives what it missed, if the server still has it." }
              : { title: "Webhook paused", description: "Nothing is sent until it is enabled." },
          ),
      });
    },
    remove: (endpoint, onRemoved) => {
      confirm(
        {
          title: "Delete the webhook?",
          text: `${endpoint.url} receives nothing any more. Its deliveries are deleted too, also those that are pending.`,
          button: "Delete",
        },
        {
          send: () => deleteEndpoint(endpoint.id),
          removedId: endpoint.id,
          failure: "The webhook was not deleted",
          done: () => {
            showToast({ title: "Webhook deleted", description: endpoint.url });
            onRemoved();
          },
        },
      );
    },
    replay: ({ endpoint_id: endpointId, id }) =>
      void perform({
        send: () => replayDelivery(endpointId, id),
        failure: "The event was not sent again",
        done: () => showToast({ title: "The event is sent again", description: "It has the same id as before." }),
      }),
    confirmation,
    closeConfirmation,
    isBusy,
  };
}
