// Webhooks: addresses that are told about events.
import { EmptyState } from "@/design/components/empty-state";

export default function WebhooksSection() {
  return (
    <EmptyState title="A webhook sends events to another program" command="footplate webhooks ls">
      This section is not in the dashboard yet. The command line and the API offer everything.
    </EmptyState>
  );
}
