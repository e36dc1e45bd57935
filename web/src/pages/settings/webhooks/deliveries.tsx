// The deliveries of an endpoint: what was sent, the response, and the payload of the one that is selected.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronDown, ChevronRight } from "lucide-react";
import { useState } from "react";

import { displayShortcut } from "@/actions/shortcuts";
import { useAction } from "@/actions/use-actions";
import { deliveryListQuery, type WebhookDelivery, type WebhookEndpoint } from "@/api/queries/webhooks";
import { cn } from "@/design/classes";
import { Button } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { Section } from "@/design/components/facts";
import { Select } from "@/design/components/select";
import { SkeletonRows } from "@/design/components/skeleton";
import { Time } from "@/design/components/time";
import { CodeBlock, SafeText } from "@/design/text/text";
import { useListKeys } from "@/frame/use-list-keys";

import type { SectionAddress } from "../shared/use-section";
import { DeliveryState } from "./marks";

const STATUSES = [
  { value: "failed", label: "Failed" },
  { value: "pending", label: "Pending" },
  { value: "delivered", label: "Delivered" },
] as const;

interface Props {
  endpoint: WebhookEndpoint;
  address: SectionAddress;
  onReplay: (delivery: WebhookDelivery) => void;
}

export function Deliveries({ endpoint, address, onReplay }: Props) {
  const { search, replace } = address;
  const list = useInfiniteQuery(deliveryListQuery(endpoint.id, search.status));
  const deliveries = list.data?.pages.flatMap((page) => page.data) ?? [];
  const selected = deliveries.find((one) => one.id === search.selected);
  const [openId, setOpenId] = useState<string | null>(null);
  function toggle(id: string): void {
    replace({ selected: id });
    setOpenId(openId === id ? null : id);
  }
  const canReplay = endpoint.disabled_at === null;
  useListKeys({
    next: "settings.work-next",
    previous: "settings.work-previous",
    open: "settings.work-open",
    count: deliveries.length,
    selected: deliveries.findIndex((one) => one.id === search.selected),
    onSelect: (index) => {
      replace({ selected: deliveries[index]?.id });
    },
    onOpen: (index) => {
      const one = deliveries[index];
      if (one !== undefined) {
        toggle(one.id);
      }
    },
  });
  useAction(
    "settings.webhook-replay",
    () => {
      if (selected !== undefined) {
        onReplay(selected);
      }
    },
    { isEnabled: canReplay && selected !== undefined },
  );
  useAction("settings.webhook-failed", () => {
    replace({ status: search.status === "failed" ? undefined : "failed" });
  });
  return (
    <Section title="Deliveries">
      <Select
        label="Status of the deliveries"
        className="w-40 self-start"
        options={STATUSES}
        clearLabel="All"
        value={search.status ?? null}
        onChange={(status) => {
          replace({ status: status ?? undefined });
        }}
      />
      {list.isPending && <SkeletonRows count={3} />}
      {list.error !== null && list.data === undefined && (
        <ErrorPanel title="The deliveries could not be loaded" error={list.error} onRetry={() => void list.refetch()} />
      )}
      {list.isSuccess && deliveries.length === 0 && (
        <p className="text-muted">
          {search.status === undefined
            ? "Nothing was sent yet. Send a test to see whether it arrives."
            : "No delivery is in this state."}
        </p>
      )}
      {deliveries.length > 0 && (
        <ul aria-label="Deliveries" className="border-t">
          {deliveries.map((delivery) => (
            <li
              key={delivery.id}
              aria-current={delivery.id === search.selected ? "true" : undefined}
              className="border-b border-l-2 border-l-transparent aria-[current]:border-l-accent aria-[current]:bg-selected"
            >
              <Summary
                delivery={delivery}
                isOpen={delivery.id === openId}
                onToggle={() => {
                  toggle(delivery.id);
                }}
              />
              {delivery.id === openId && <Details delivery={delivery} onReplay={canReplay ? onReplay : undefined} />}
            </li>
          ))}
        </ul>
      )}
      {list.hasNextPage && (
        <Button
          className="self-start max-md:h-11"
          disabled={list.isFetchingNextPage}
          onClick={() => void list.fetchNextPage()}
        >
          Show older deliveries
        </Button>
      )}
    </Section>
  );
}

function Summary({ delivery, isOpen, onToggle }: { delivery: WebhookDelivery; isOpen: boolean; onToggle: () => void }) {
  const Icon = isOpen ? ChevronDown : ChevronRight;
  return (
    <button
      type="button"
      aria-expanded={isOpen}
      onClick={onToggle}
      className={cn(
        "grid min-h-9 w-full grid-cols-[16px_104px_minmax(0,2fr)_minmax(0,3fr)_88px] items-center gap-x-3 px-2 py-1 text-left hover:bg-hover",
        "max-md:flex max-md:min-h-11 max-md:flex-wrap",
      )}
    >
      <Icon aria-hidden className="size-4 text-muted" />
      <DeliveryState delivery={delivery} />
      <span className="truncate">{delivery.event_type}</span>
      <span className="truncate text-muted max-md:-order-none max-md:basis-full">
        <SafeText limit={300}>{describeResponse(delivery)}</SafeText>
      </span>
      <Time value={delivery.created_at} className="text-muted" />
    </button>
  );
}

function describeResponse({ attempts, last_status_code: code, last_error: error }: WebhookDelivery): string {
  if (attempts === 0) {
    return "not sent yet";
  }
  const response = error ?? (code === null ? "no response" : `status ${code}`);
  return attempts === 1 ? response : `${response}, ${attempts} attempts`;
}

interface DetailsProps {
  delivery: WebhookDelivery;
  onReplay: ((delivery: WebhookDelivery) => void) | undefined;
}

function Details({ delivery, onReplay }: DetailsProps) {
  return (
    <div className="flex flex-col gap-2 px-2 pb-3 pl-9">
      <p className="text-sm text-muted">
        {delivery.last_error !== null && (
          <>
            <SafeText>{delivery.last_error}</SafeText>{" "}
          </>
        )}
        {delivery.last_attempt_at !== null && (
          <>
            Last attempt <Time value={delivery.last_attempt_at} />
            {delivery.last_status_code !== null && `, status ${delivery.last_status_code}`}.{" "}
          </>
        )}
        {delivery.status === "pending" && delivery.next_attempt_at !== null && (
          <>
            Next attempt <Time value={delivery.next_attempt_at} />.
          </>
        )}
      </p>
      <CodeBlock label="Payload">{JSON.stringify(delivery.payload, null, 2)}</CodeBlock>
      <div className="flex flex-wrap items-center gap-3">
        <Button
          className="max-md:h-11"
          disabled={onReplay === undefined}
          shortcut={displayShortcut("r").join(" ")}
          onClick={() => onReplay?.(delivery)}
        >
          Send again
        </Button>
        {onReplay === undefined && <span className="text-sm text-muted">Enable the webhook first.</span>}
        {delivery.session_id !== null && (
          <Link
            to="/sessions/$sessionId"
            params={{ sessionId: delivery.session_id }}
            className="text-accent hover:underline"
          >
            Open the session
          </Link>
        )}
      </div>
    </div>
  );
}
