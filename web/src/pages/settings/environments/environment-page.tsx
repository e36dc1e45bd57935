// An environment: its backend, what its commands reach, and how its image is prepared.
import { useQuery } from "@tanstack/react-query";
import { Archive, Ellipsis } from "lucide-react";

import { displayShortcut } from "@/actions/shortcuts";
import { useActions } from "@/actions/use-actions";
import { type Environment, environmentQuery } from "@/api/queries/environments";
import { meQuery } from "@/api/queries/me";
import { backendsQuery } from "@/api/queries/new-session";
import { Button } from "@/design/components/button";
import { Facts, Section } from "@/design/components/facts";
import { Mark } from "@/design/components/mark";
import { Menu, MenuContent, MenuItem, MenuTrigger } from "@/design/components/menu";
import { Time } from "@/design/components/time";
import { CodeBlock, SafeText } from "@/design/text/text";
import { ConfirmDialog } from "@/pages/session/confirm-dialog";

import { EntryHeader, LoadedEntry } from "../work/loaded-entry";
import type { SectionAddress } from "../shared/use-section";
import { describeNetwork, PACKAGE_MANAGERS, readConfig } from "./model";
import { useEnvironmentCommands } from "./use-environment-commands";

interface Props {
  environmentId: string;
  address: SectionAddress;
}

export function EnvironmentPage({ environmentId, address }: Props) {
  const query = useQuery(environmentQuery(environmentId));
  return (
    <LoadedEntry query={query} noun="environment" onClose={address.close}>
      {(environment) => <Content environment={environment} address={address} />}
    </LoadedEntry>
  );
}

function Content({ environment, address }: { environment: Environment; address: SectionAddress }) {
  const { data: me } = useQuery(meQuery);
  const commands = useEnvironmentCommands();
  const canOperate = me?.permissions.includes("operate") === true;
  const isCurrent = environment.archived_at === null;
  function edit(): void {
    address.open({ item: environment.id, edit: true });
  }
  function remove(): void {
    commands.remove(environment, address.close);
  }
  useActions({
    ...(canOperate && isCurrent ? { "settings.environment-edit": edit } : {}),
    ...(canOperate ? { "settings.environment-delete": remove } : {}),
  });
  const config = readConfig(environment);
  const packages = PACKAGE_MANAGERS.filter((name) => config.packages[name].length > 0);
  return (
    <div className="mx-auto flex w-full max-w-4xl flex-col gap-6 p-6 max-md:p-4">
      <EntryHeader
        title={environment.name}
        backLabel="All environments"
        onBack={address.close}
        state={!isCurrent && <Mark icon={Archive} text="archived" />}
      >
        {canOperate && (
          <>
            {isCurrent && (
              <Button className="max-md:h-11 max-md:flex-1" shortcut={displayShortcut("e").join(" ")} onClick={edit}>
                Edit
              </Button>
            )}
            <Menu>
              <MenuTrigger render={<Button variant="quiet" size="icon" aria-label="More" className="max-md:size-11" />}>
                <Ellipsis />
              </MenuTrigger>
              <MenuContent align="end">
                <MenuItem isDangerous shortcut={displayShortcut("shift+d").join(" ")} onClick={remove}>
                  Delete…
                </MenuItem>
              </MenuContent>
            </Menu>
          </>
        )}
      </EntryHeader>
      {environment.description !== null && environment.description !== "" && (
        <p className="[overflow-wrap:anywhere] whitespace-pre-wrap">
          <SafeText>{environment.description}</SafeText>
        </p>
      )}
      <Section title="Environment">
        <Facts
          facts={[
            ["Backend", <Backend name={config.backend} />],
            ["Image", config.image === "" ? "the server's" : <SafeText>{config.image}</SafeText>],
            ["Changed", <Time value={environment.updated_at} />],
          ]}
        />
      </Section>
      <Section title="Network">
        <p>
          Commands reach: <SafeText>{describeNetwork(config)}</SafeText>.
        </p>
        {config.isLimited && config.hosts.length > 0 && (
          <CodeBlock label="Allowed hosts">{config.hosts.join("\n")}</CodeBlock>
        )}
      </Section>
      {(packages.length > 0 || config.setup !== "") && (
        <Section title="Preparation">
          {packages.length > 0 && (
            <Facts facts={packages.map((name) => [name, <SafeText>{config.packages[name].join(" ")}</SafeText>])} />
          )}
          {config.setup !== "" && (
            <CodeBlock label="Setup script" className="whitespace-pre-wrap">
              {config.setup}
            </CodeBlock>
          )}
        </Section>
      )}
      {commands.confirmation !== null && (
        <ConfirmDialog confirmation={commands.confirmation} onClose={commands.closeConfirmation} />
      )}
    </div>
  );
}

function Backend({ name }: { name: string }) {
  const { data } = useQuery(backendsQuery);
  const backend = data?.data.find((one) => (name === "" ? one.is_default : one.name === name));
  const workers = backend?.workers;
  return (
    <>
      {name === "" ? `the server's default${backend === undefined ? "" : `, ${backend.name}`}` : name}
      {workers !== undefined && (
        <span className="text-muted">
          {" "}
          · {workers} running {workers === 1 ? "worker" : "workers"}
        </span>
      )}
      {data !== undefined && backend === undefined && (
        <span className="text-failed"> · not offered by the operator any more</span>
      )}
    </>
  );
}
