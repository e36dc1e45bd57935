// The state of an endpoint and of a delivery: an icon and a word.
import { Check, CircleDashed, Pause, Radio, TriangleAlert, X } from "lucide-react";

import type { WebhookDelivery, WebhookEndpoint } from "@/api/queries/webhooks";
import { Mark } from "@/design/components/mark";

export function EndpointState({ endpoint }: { endpoint: WebhookEndpoint }) {
  if (endpoint.disabled_at !== null) {
    return endpoint.disabled_reason === null ? (
      <Mark icon={Pause} text="paused" />
    ) : (
      <Mark icon={X} text="disabled" className="text-failed" title={endpoint.disabled_reason} />
    );
  }
  return endpoint.failing_since === null ? (
    <Mark icon={Radio} text="active" className="text-running" />
  ) : (
    <Mark icon={TriangleAlert} text="failing" className="text-waiting" />
  );
}

export function DeliveryState({ delivery }: { delivery: WebhookDelivery }) {
  const { status, last_error: error } = delivery;
  if (status === "delivered") {
    return <Mark icon={Check} text="delivered" />;
  }
  return status === "failed" ? (
    <Mark icon={X} text="failed" className="text-failed" title={error ?? undefined} />
  ) : (
    <Mark icon={CircleDashed} text="pending" className="text-waiting" title={error ?? undefined} />
  );
}
