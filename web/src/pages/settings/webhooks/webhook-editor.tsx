// Loads what the form of a webhook needs, and says what was saved.
import { useQuery, useQueryClient } from "@tanstack/react-query";

import { keys } from "@/api/keys";
import { meQuery } from "@/api/queries/me";
import {
  createEndpoint,
  endpointQuery,
  type NewWebhookEndpoint,
  updateEndpoint,
  type WebhookEndpoint,
} from "@/api/queries/webhooks";
import { showToast } from "@/design/components/toast";

import { LoadedEntry } from "../work/loaded-entry";
import { NEW, type SectionAddress } from "../shared/use-section";
import { toFields } from "./model";
import { WebhookForm } from "./webhook-form";

interface Props {
  endpointId: string;
  address: SectionAddress;
  onSecret: (endpoint: NewWebhookEndpoint) => void;
}

export function WebhookEditor({ endpointId, address, onSecret }: Props) {
  const isNew = endpointId === NEW;
  const { data: me } = useQuery(meQuery);
  const queries = useQueryClient();
  // What others change meanwhile must not replace what is being typed.
  const endpoint = useQuery({
    ...endpointQuery(endpointId),
    enabled: !isNew,
    staleTime: "static",
    refetchOnMount: "always",
  });
  function finish(saved: WebhookEndpoint): void {
    void queries.invalidateQueries({ queryKey: keys.webhooks });
    showToast({ title: isNew ? "Webhook created" : "Webhook saved", description: saved.url });
    address.open({ item: saved.id });
  }
  if (isNew) {
    return (
      <WebhookForm
        endpoint={null}
        isAdministrator={me?.permissions.includes("manage_members") ?? false}
        send={async (values) => {
          const created = await createEndpoint(toFields(values, null));
          onSecret(created);
          return created;
        }}
        onSaved={finish}
        onCancel={address.close}
      />
    );
  }
  return (
    <LoadedEntry
      query={{ ...endpoint, data: endpoint.isFetching ? undefined : endpoint.data }}
      noun="webhook"
      onClose={address.close}
    >
      {(stored) => (
        <WebhookForm
          endpoint={stored}
          isAdministrator={me?.permissions.includes("manage_members") ?? false}
          send={(values) => updateEndpoint(stored.id, toFields(values, stored))}
          onSaved={finish}
          onCancel={() => {
            address.open({ item: stored.id });
          }}
        />
      )}
    </LoadedEntry>
  );
}
