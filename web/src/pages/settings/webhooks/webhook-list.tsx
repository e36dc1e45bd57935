// All endpoints, each with its state, its events and its last delivery.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";

import { useActions } from "@/actions/use-actions";
import { endpointListQuery, lastDeliveryQuery, type WebhookEndpoint } from "@/api/queries/webhooks";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { Skeleton } from "@/design/components/skeleton";
import { Time } from "@/design/components/time";
import { ConfirmDialog } from "@/pages/session/confirm-dialog";

import { EntryLink, EntryList, entriesOf } from "../shared/entry-list";
import { NEW, type SectionAddress } from "../shared/use-section";
import { ListBar } from "../work/list-bar";
import { describeEvents } from "./event-types";
import { DeliveryState, EndpointState } from "./marks";
import { useWebhookCommands } from "./use-webhook-commands";

const COLUMNS = ["Address", "State", "Events", "Sessions", "Last delivery"];
const GRID = "md:grid-cols-[minmax(0,4fr)_96px_minmax(0,3fr)_104px_208px]";

export function WebhookList({ address }: { address: SectionAddress }) {
  const { search, open } = address;
  const list = useInfiniteQuery(endpointListQuery);
  const selected = entriesOf(list).find((one) => one.id === search.selected);
  const commands = useWebhookCommands();
  useActions(
    selected === undefined
      ? {}
      : {
          "settings.webhook-edit": () => {
            open({ item: selected.id, edit: true });
          },
          "settings.webhook-test": () => {
            commands.test(selected);
          },
          "settings.webhook-pause": () => {
            commands.togglePause(selected);
          },
          "settings.webhook-delete": () => {
            commands.remove(selected, () => undefined);
          },
        },
  );
  return (
    <>
      <ListBar
        address={address}
        list={list}
        creation={{ action: "settings.webhook-new", label: "New webhook" }}
        hasArchive={false}
      />
      <EntryList
        label="Webhooks"
        hasPages
        list={list}
        address={address}
        columns={COLUMNS}
        grid={GRID}
        empty={
          <EmptyState
            title="A webhook sends events to your own server, or to a chat"
            command="footplate webhooks create https://hooks.example.com/footplate"
            action={
              <Button
                variant="primary"
                className="max-md:h-11"
                onClick={() => {
                  open({ item: NEW });
                }}
              >
                Create a webhook
              </Button>
            }
          >
            For example, when a session waits for you or has ended.
          </EmptyState>
        }
      >
        {(endpoint) => (
          <>
            <EntryLink address={address} id={endpoint.id} name={endpoint.url} />
            <Cells endpoint={endpoint} />
          </>
        )}
      </EntryList>
      {commands.confirmation !== null && (
        <ConfirmDialog confirmation={commands.confirmation} onClose={commands.closeConfirmation} />
      )}
    </>
  );
}

function Cells({ endpoint }: { endpoint: WebhookEndpoint }) {
  return (
    <>
      <EndpointState endpoint={endpoint} />
      <span className="truncate" title={endpoint.event_types.join("\n")}>
        {describeEvents(endpoint.event_types)}
      </span>
      <span className="text-muted">{endpoint.session_id === null ? "all sessions" : "one session"}</span>
      <LastDelivery endpointId={endpoint.id} />
    </>
  );
}

function LastDelivery({ endpointId }: { endpointId: string }) {
  const { data: delivery, isPending } = useQuery(lastDeliveryQuery(endpointId));
  if (isPending) {
    return <Skeleton className="h-3 w-24" />;
  }
  if (delivery === undefined || delivery === null) {
    return <span className="text-muted">none yet</span>;
  }
  return (
    <span className="flex items-center gap-2">
      <DeliveryState delivery={delivery} />
      <Time value={delivery.created_at} className="truncate text-muted" />
    </span>
  );
}
