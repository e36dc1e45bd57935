// Webhooks: addresses that receive events.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { meQuery } from "@/api/queries/me";
import type { NewWebhookEndpoint } from "@/api/queries/webhooks";
import { EmptyState } from "@/design/components/empty-state";
import { formatExactTime } from "@/design/format";

import { SecretDialog } from "../shared/secret-dialog";
import { useSection } from "../shared/use-section";
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
          title="Copy the secret"
          secret={created.secret}
          warning="Your receiver verifies events with this secret. It is shown only now and cannot be read again."
          note={
            created.old_secret_expires_at === null
              ? undefined
              : `The old secret is valid too until ${formatExactTime(new Date(created.old_secret_expires_at))}.`
          }
          onClose={() => {
            setCreated(null);
          }}
        />
      )}
    </>
  );
}
