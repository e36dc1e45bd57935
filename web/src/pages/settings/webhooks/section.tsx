// Webhooks: addresses that receive events.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { meQuery } from "@/api/queries/me";
import type { NewWebhookEndpoint } from "@/api/queries/webhooks";
import { EmptyState } from "@/design/components/empty-state";

import { useSection } from "../work/use-section";
import { SecretDialog } from "./secret-dialog";
import { WebhookEditor } from "./webhook-editor";
import { WebhookList } from "./webhook-list";
import { WebhookPage } from "./webhook-page";

export default function WebhooksSection() {
  const address = useSection("webhooks");
  const { item, edit } = address.search;
  const { data: me } = useQuery(meQuery);
  const [created, setCreated] = useState<NewWebhookEndpoint | null>(null);
  if (me?.permissions.includes("operate") === false) {
    return (
      <EmptyState title="Webhooks are hidden from you">
        Your role does not permit to see or change them. Ask an administrator for the role operator or member.
      </EmptyState>
    );
  }
  const content =
    item === undefined ? (
      <WebhookList address={address} />
    ) : edit === true || item === "new" ? (
      <WebhookEditor key={item} endpointId={item} address={address} onSecret={setCreated} />
    ) : (
      <WebhookPage key={item} endpointId={item} address={address} onSecret={setCreated} />
    );
  return (
    <>
      {content}
      {created !== null && (
        <SecretDialog
          endpoint={created}
          onClose={() => {
            setCreated(null);
          }}
        />
      )}
    </>
  );
}
