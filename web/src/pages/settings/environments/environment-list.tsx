// All environments, each with its backend, image and network.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Archive } from "lucide-react";

import { useActions } from "@/actions/use-actions";
import { type Environment, environmentListQuery } from "@/api/queries/environments";
import { meQuery } from "@/api/queries/me";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { Mark } from "@/design/components/mark";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";
import { ConfirmDialog } from "@/pages/session/confirm-dialog";

import { EntryLink, EntryList, entriesOf } from "../shared/entry-list";
import { NEW, type SectionAddress } from "../shared/use-section";
import { ListBar } from "../work/list-bar";
import { describeNetwork, readConfig } from "./model";
import { useEnvironmentCommands } from "./use-environment-commands";

const COLUMNS = ["Environment", "Backend", "Image", "Network", "Changed"];
const GRID = "md:grid-cols-[minmax(0,3fr)_112px_minmax(0,3fr)_minmax(0,3fr)_96px]";

export function EnvironmentList({ address }: { address: SectionAddress }) {
  const { search, open } = address;
  const { data: me } = useQuery(meQuery);
  const canOperate = me?.permissions.includes("operate") ?? false;
  const list = useInfiniteQuery(environmentListQuery(search.all === true));
  const selected = entriesOf(list).find((one) => one.id === search.selected);
  const commands = useEnvironmentCommands();
  useActions(
    canOperate && selected !== undefined
      ? {
          ...(selected.archived_at === null
            ? {
                "settings.environment-edit": () => {
                  open({ item: selected.id, edit: true });
                },
              }
            : {}),
          "settings.environment-delete": () => {
            commands.remove(selected, () => undefined);
          },
        }
      : {},
  );
  return (
    <>
      <ListBar
        address={address}
        list={list}
        creation={canOperate ? { action: "settings.environment-new", label: "New environment" } : undefined}
        note={
          me === undefined || canOperate ? undefined : "You can only look: changes need the role operator or member."
        }
        hasArchive
      />
      <EntryList
        label="Environments"
        hasPages
        list={list}
        address={address}
        columns={COLUMNS}
        grid={GRID}
        empty={
          <EmptyState
            title="An environment says where commands run and what they reach"
            command="footplate environments create default"
            {...(canOperate
              ? {
                  action: (
                    <Button
                      variant="primary"
                      className="max-md:h-11"
                      onClick={() => {
                        open({ item: NEW });
                      }}
                    >
                      Create an environment
                    </Button>
                  ),
                }
              : {})}
          >
            It can narrow what the operator allows, and never widen it.
          </EmptyState>
        }
      >
        {(environment) => (
          <>
            <EntryLink address={address} id={environment.id} name={environment.name} />
            <Cells environment={environment} />
          </>
        )}
      </EntryList>
      {commands.confirmation !== null && (
        <ConfirmDialog confirmation={commands.confirmation} onClose={commands.closeConfirmation} />
      )}
    </>
  );
}

function Cells({ environment }: { environment: Environment }) {
  const config = readConfig(environment);
  return (
    <>
      <span className={config.backend === "" ? "text-muted" : undefined}>
        {config.backend === "" ? "default" : config.backend}
      </span>
      <span className="truncate text-muted" title={config.image}>
        {config.image === "" ? (
          <span className="max-md:hidden">–</span>
        ) : (
          <SafeText limit={300}>{config.image}</SafeText>
        )}
      </span>
      <span className="truncate" title={config.hosts.join("\n")}>
        <span className="text-muted md:hidden">Network: </span>
        {describeNetwork(config)}
      </span>
      {environment.archived_at === null ? (
        <Time value={environment.updated_at} className="truncate text-muted" />
      ) : (
        <Mark icon={Archive} text="archived" />
      )}
    </>
  );
}
