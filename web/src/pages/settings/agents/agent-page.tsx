// An agent: what it is made of, who uses it, and its versions.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Archive, Ellipsis } from "lucide-react";

import { displayShortcut } from "@/actions/shortcuts";
import { useActions } from "@/actions/use-actions";
import { type Agent, agentQuery, agentSchedulesQuery, agentVersionListQuery } from "@/api/queries/agents";
import { meQuery } from "@/api/queries/me";
import { sessionCountsQuery } from "@/api/queries/sessions";
import { Button, buttonStyle } from "@/design/components/button";
import { Facts, Section } from "@/design/components/facts";
import { Mark } from "@/design/components/mark";
import { Menu, MenuContent, MenuItem, MenuTrigger } from "@/design/components/menu";
import { Time } from "@/design/components/time";
import { CodeBlock, SafeText } from "@/design/text/text";
import { ConfirmDialog } from "@/pages/session/confirm-dialog";

import { EntryHeader, LoadedEntry } from "../work/loaded-entry";
import { RuleList } from "../work/rule-list";
import type { SectionAddress } from "../shared/use-section";
import { furtherFields } from "./model";
import { findToolset, readSettings, TOOL_SETTINGS, TOOLS } from "./toolset";
import { useAgentCommands } from "./use-agent-commands";

interface Props {
  agentId: string;
  address: SectionAddress;
}

export function AgentPage({ agentId, address }: Props) {
  const query = useQuery(agentQuery(agentId));
  return (
    <LoadedEntry query={query} noun="agent" onClose={address.close}>
      {(agent) => <Content agent={agent} address={address} />}
    </LoadedEntry>
  );
}

function Content({ agent, address }: { agent: Agent; address: SectionAddress }) {
  const navigate = useNavigate();
  const { data: me } = useQuery(meQuery);
  const commands = useAgentCommands();
  const canChange = agent.archived_at === null && me?.permissions.includes("operate") === true;
  const hasVersions = agent.version > 1;
  function edit(): void {
    address.open({ item: agent.id, edit: true });
  }
  function compare(): void {
    address.open({ item: agent.id, versions: `${agent.version - 1}-${agent.version}` });
  }
  useActions({
    ...(hasVersions ? { "settings.agent-compare": compare } : {}),
    ...(canChange
      ? {
          "settings.agent-edit": edit,
          "settings.agent-session": () => void navigate({ to: "/new", search: { agent_id: agent.id } }),
          "settings.agent-archive": () => void commands.archive(agent),
        }
      : {}),
  });
  const further = furtherFields(agent);
  return (
    <div className="mx-auto flex w-full max-w-4xl flex-col gap-6 p-6 max-md:p-4">
      <EntryHeader
        title={agent.name}
        backLabel="All agents"
        onBack={address.close}
        state={agent.archived_at !== null && <Mark icon={Archive} text="archived" />}
      >
        {canChange && (
          <>
            <Button className="max-md:h-11 max-md:flex-1" shortcut={displayShortcut("e").join(" ")} onClick={edit}>
              Edit
            </Button>
            <Link
              to="/new"
              search={{ agent_id: agent.id }}
              className={buttonStyle({ className: "max-md:h-11 max-md:flex-1" })}
            >
              Start a session
            </Link>
            <Menu>
              <MenuTrigger render={<Button variant="quiet" size="icon" aria-label="More" className="max-md:size-11" />}>
                <Ellipsis />
              </MenuTrigger>
              <MenuContent align="end">
                <MenuItem
                  isDangerous
                  shortcut={displayShortcut("shift+d").join(" ")}
                  onClick={() => void commands.archive(agent)}
                >
                  Archive…
                </MenuItem>
              </MenuContent>
            </Menu>
          </>
        )}
      </EntryHeader>
      {agent.description !== null && (
        <p className="whitespace-pre-wrap [overflow-wrap:anywhere]">
          <SafeText>{agent.description}</SafeText>
        </p>
      )}
      <div className="grid grid-cols-2 gap-6 max-md:grid-cols-1">
        <Section title="Agent">
          <Facts
            facts={[
              ["Model", <SafeText>{agent.model.id}</SafeText>],
              ["Harness", agent.harness ?? "the server's default"],
              ["Version", `${agent.version}`],
              ["Changed", <Time value={agent.updated_at} />],
              ["Sessions", <Sessions agentId={agent.id} />],
              ["Schedules", <Schedules agentId={agent.id} />],
            ]}
          />
        </Section>
        <Tools agent={agent} />
      </div>
      <Section title="System prompt">
        {agent.system === null ? (
          <p className="text-muted">It has none.</p>
        ) : (
          <CodeBlock label="Text of the system prompt" className="whitespace-pre-wrap">
            {agent.system}
          </CodeBlock>
        )}
      </Section>
      <RuleList
        permissions={agent.permissions}
        none="It has none of its own. The rules of the organisation and the project apply."
      />
      {Object.keys(further).length > 0 && (
        <Section title="Further fields">
          <CodeBlock label="Further fields as JSON">{JSON.stringify(further, null, 2)}</CodeBlock>
        </Section>
      )}
      <Versions agent={agent} address={address} onCompare={hasVersions ? compare : undefined} />
      {commands.confirmation !== null && (
        <ConfirmDialog confirmation={commands.confirmation} onClose={commands.closeConfirmation} />
      )}
    </div>
  );
}

function Sessions({ agentId }: { agentId: string }) {
  const { data } = useQuery(sessionCountsQuery({ agent_id: agentId }));
  return (
    <Link to="/sessions" search={{ agent_id: agentId }} className="text-accent hover:underline">
      {data === undefined ? "show them" : data.total.toLocaleString()}
    </Link>
  );
}

function Schedules({ agentId }: { agentId: string }) {
  const { data } = useQuery(agentSchedulesQuery(agentId));
  if (data === undefined || data.data.length === 0) {
    return <span className="text-muted">{data === undefined ? "…" : "none"}</span>;
  }
  return (
    <ul>
      {data.data.map((one) => (
        <li key={one.id}>
          <Link
            to="/schedules/$scheduleId"
            params={{ scheduleId: one.id }}
            className="[overflow-wrap:anywhere] text-accent hover:underline"
          >
            <SafeText limit={300}>{one.name}</SafeText>
          </Link>
        </li>
      ))}
    </ul>
  );
}

function Tools({ agent }: { agent: Agent }) {
  const toolset = findToolset(agent);
  const settings = readSettings(toolset);
  const labels = new Map(TOOL_SETTINGS.map(({ value, label }) => [value, label]));
  if (toolset === undefined) {
    return (
      <Section title="Built-in tools">
        <p className="text-muted">It has none.</p>
      </Section>
    );
  }
  return (
    <Section title="Built-in tools">
      <Facts
        facts={[
          ...TOOLS.map(
            (name) =>
              [
                name,
                <span className={settings[name] === "off" ? "text-muted" : undefined}>
                  {labels.get(settings[name])}
                </span>,
              ] as [string, React.ReactNode],
          ),
          ["Questions to you", toolset.ask_user === true ? "On" : <span className="text-muted">Off</span>],
          ["Child sessions", toolset.spawn_sessions === true ? "On" : <span className="text-muted">Off</span>],
        ]}
      />
    </Section>
  );
}

interface VersionsProps {
  agent: Agent;
  address: SectionAddress;
  onCompare: (() => void) | undefined;
}

function Versions({ agent, address, onCompare }: VersionsProps) {
  const list = useInfiniteQuery(agentVersionListQuery(agent.id));
  const versions = list.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <Section title="Versions">
      <ul aria-label="Versions">
        {versions.map((one) => (
          <li key={one.version} className="flex min-h-9 items-center gap-3 border-b">
            <span className="w-24 tabular-nums">Version {one.version}</span>
            <Time value={one.updated_at} className="w-28 text-muted" />
            <span className="min-w-0 flex-1 truncate text-muted">
              <SafeText limit={300}>{one.model.id}</SafeText>
            </span>
            {one.version > 1 && (
              <Button
                variant="quiet"
                size="sm"
                className="max-md:h-11"
                aria-label={`What changed in version ${one.version}`}
                onClick={() => {
                  address.open({ item: agent.id, versions: `${one.version - 1}-${one.version}` });
                }}
              >
                What changed
              </Button>
            )}
          </li>
        ))}
      </ul>
      <div className="flex gap-2">
        {list.hasNextPage && (
          <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            Show older versions
          </Button>
        )}
        {onCompare !== undefined && (
          <Button className="max-md:h-11" shortcut={displayShortcut("v").join(" ")} onClick={onCompare}>
            Compare versions
          </Button>
        )}
      </div>
    </Section>
  );
}
