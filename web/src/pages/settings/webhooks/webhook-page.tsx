// A webhook endpoint: what it receives, and its deliveries.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Ellipsis } from "lucide-react";
import { useState } from "react";

import { displayShortcut } from "@/actions/shortcuts";
import { useActions } from "@/actions/use-actions";
import { ENDPOINT_MS, endpointQuery, type NewWebhookEndpoint, type WebhookEndpoint } from "@/api/queries/webhooks";
import { Button } from "@/design/components/button";
import { Facts, Section } from "@/design/components/facts";
import { Menu, MenuContent, MenuItem, MenuSeparator, MenuTrigger } from "@/design/components/menu";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";
import { ConfirmDialog } from "@/pages/session/confirm-dialog";

import { EntryHeader, LoadedEntry } from "../work/loaded-entry";
import type { SectionAddress } from "../shared/use-section";
import { Deliveries } from "./deliveries";
import { EndpointState } from "./marks";
import { RotateDialog } from "./rotate-dialog";
import { useWebhookCommands } from "./use-webhook-commands";

interface Props {
  endpointId: string;
  address: SectionAddress;
  onSecret: (endpoint: NewWebhookEndpoint) => void;
}

export function WebhookPage({ endpointId, address, onSecret }: Props) {
  const query = useQuery({ ...endpointQuery(endpointId), refetchInterval: ENDPOINT_MS });
  return (
    <LoadedEntry query={query} noun="webhook" onClose={address.close}>
      {(endpoint) => <Content endpoint={endpoint} address={address} onSecret={onSecret} />}
    </LoadedEntry>
  );
}

function Content({ endpoint, address, onSecret }: Omit<Props, "endpointId"> & { endpoint: WebhookEndpoint }) {
  const commands = useWebhookCommands();
  const [isRotating, setRotating] = useState(false);
  const isOff = endpoint.disabled_at !== null;
  const actions = {
    "settings.webhook-edit": () => {
      address.open({ item: endpoint.id, edit: true });
    },
    "settings.webhook-test": () => {
      commands.test(endpoint);
    },
    "settings.webhook-pause": () => {
      commands.togglePause(endpoint);
    },
    "settings.webhook-rotate": () => {
      setRotating(true);
    },
    "settings.webhook-delete": () => {
      commands.remove(endpoint, address.close);
    },
  };
  useActions(actions);
  return (
    <div className="mx-auto flex w-full max-w-4xl flex-col gap-6 p-6 max-md:p-4">
      <EntryHeader
        title={endpoint.url}
        backLabel="All webhooks"
        onBack={address.close}
        state={<EndpointState endpoint={endpoint} />}
      >
        <Button
          className="max-md:h-11 max-md:flex-1"
          disabled={commands.isBusy || isOff}
          shortcut={displayShortcut("t").join(" ")}
          onClick={actions["settings.webhook-test"]}
        >
          Send a test
        </Button>
        <Button
          className="max-md:h-11 max-md:flex-1"
          disabled={commands.isBusy}
          onClick={actions["settings.webhook-pause"]}
        >
          {isOff ? "Enable" : "Pause"}
        </Button>
        <Button className="max-md:h-11 max-md:flex-1" onClick={actions["settings.webhook-edit"]}>
          Edit
        </Button>
        <Menu>
          <MenuTrigger render={<Button variant="quiet" size="icon" aria-label="More" className="max-md:size-11" />}>
            <Ellipsis />
          </MenuTrigger>
          <MenuContent align="end">
            <MenuItem shortcut={displayShortcut("shift+r").join(" ")} onClick={actions["settings.webhook-rotate"]}>
              Replace the secret…
            </MenuItem>
            <MenuSeparator />
            <MenuItem
              isDangerous
              shortcut={displayShortcut("shift+d").join(" ")}
              onClick={actions["settings.webhook-delete"]}
            >
              Delete…
            </MenuItem>
          </MenuContent>
        </Menu>
      </EntryHeader>
      <Trouble endpoint={endpoint} />
      {endpoint.description !== null && (
        <p className="whitespace-pre-wrap [overflow-wrap:anywhere]">
          <SafeText>{endpoint.description}</SafeText>
        </p>
      )}
      <Section title="Webhook">
        <Facts
          facts={[
            ["Events", endpoint.event_types.length === 0 ? "all" : endpoint.event_types.join(", ")],
            [
              "Sessions",
              endpoint.session_id === null ? (
                "all"
              ) : (
                <Link
                  to="/sessions/$sessionId"
                  params={{ sessionId: endpoint.session_id }}
                  className="text-accent hover:underline"
                >
                  {endpoint.session_id}
                </Link>
              ),
            ],
            ["Body", endpoint.format === "slack" ? "a message for a chat" : "the event, as JSON"],
            ["Order", endpoint.ordered ? "one after the other in each session" : "as fast as possible, in any order"],
            ["Created", <Time value={endpoint.created_at} />],
            ...(endpoint.old_secret_expires_at === null
              ? []
              : [["Old secret", <OldSecret expiry={endpoint.old_secret_expires_at} />] as [string, React.ReactNode]]),
          ]}
        />
      </Section>
      <Deliveries endpoint={endpoint} address={address} onReplay={commands.replay} />
      {isRotating && (
        <RotateDialog
          endpoint={endpoint}
          onRotated={onSecret}
          onClose={() => {
            setRotating(false);
          }}
        />
      )}
      {commands.confirmation !== null && (
        <ConfirmDialog confirmation={commands.confirmation} onClose={commands.closeConfirmation} />
      )}
    </div>
  );
}

function OldSecret({ expiry }: { expiry: string }) {
  return (
    <>
      ends <Time value={expiry} />
    </>
  );
}

function Trouble({ endpoint }: { endpoint: WebhookEndpoint }) {
  if (endpoint.disabled_at !== null && endpoint.disabled_reason !== null) {
    return (
      <p role="status" className="rounded-md bg-failed-soft px-3 py-2 text-failed">
        The server disabled it: <SafeText>{endpoint.disabled_reason}</SafeText> Fix the cause, then enable it.
      </p>
    );
  }
  return endpoint.failing_since === null || endpoint.disabled_at !== null ? null : (
    <p role="status" className="rounded-md bg-waiting-soft px-3 py-2 text-waiting">
      No delivery has succeeded since an attempt failed <Time value={endpoint.failing_since} />. If that goes on for 5
      days, the server disables this webhook.
    </p>
  );
}
