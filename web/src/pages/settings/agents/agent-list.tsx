// All agents, each with its model and how many sessions use it.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Archive } from "lucide-react";

import { useActions } from "@/actions/use-actions";
import { type Agent, agentListQuery } from "@/api/queries/agents";
import { meQuery } from "@/api/queries/me";
import { sessionCountsQuery } from "@/api/queries/sessions";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { Mark } from "@/design/components/mark";
import { Skeleton } from "@/design/components/skeleton";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";
import { ConfirmDialog } from "@/pages/session/confirm-dialog";

import { EntryLink, EntryList, entriesOf } from "../shared/entry-list";
import { NEW, type SectionAddress } from "../shared/use-section";
import { ListBar } from "../work/list-bar";
import { useAgentCommands } from "./use-agent-commands";

const COLUMNS = ["Agent", "Model", "Harness", "Version", "Sessions", "Changed"];
const GRID = "md:grid-cols-[minmax(0,3fr)_minmax(0,3fr)_minmax(0,1.5fr)_72px_96px_96px]";

export function AgentList({ address }: { address: SectionAddress }) {
  const { search, open } = address;
  const { data: me } = useQuery(meQuery);
  const canOperate = me?.permissions.includes("operate") ?? false;
  const list = useInfiniteQuery(agentListQuery(search.all === true));
  const selected = entriesOf(list).find((one) => one.id === search.selected);
  const commands = useAgentCommands();
  useActions(
    canOperate && selected?.archived_at === null
      ? {
          "settings.agent-edit": () => {
            open({ item: selected.id, edit: true });
          },
          "settings.agent-archive": () => void commands.archive(selected),
        }
      : {},
  );
  return (
    <>
      <ListBar
        address={address}
        list={list}
        creation={canOperate ? { action: "settings.agent-new", label: "New agent" } : undefined}
        note={
          me === undefined || canOperate ? undefined : "You can only look: changes need the role operator or member."
        }
        hasArchive
      />
      <EntryList
        label="Agents"
        hasPages
        list={list}
        address={address}
        columns={COLUMNS}
        grid={GRID}
        empty={
          <EmptyState
            title="An agent has instructions, a model and tools"
            command="footplate agents create engineer"
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
                      Create an agent
                    </Button>
                  ),
                }
              : {})}
          >
            Each session runs one. It keeps the version that it started with.
          </EmptyState>
        }
      >
        {(agent) => (
          <>
            <EntryLink address={address} id={agent.id} name={agent.name} />
            <Cells agent={agent} />
          </>
        )}
      </EntryList>
      {commands.confirmation !== null && (
        <ConfirmDialog confirmation={commands.confirmation} onClose={commands.closeConfirmation} />
      )}
    </>
  );
}

function Cells({ agent }: { agent: Agent }) {
  return (
    <>
      <span className="truncate" title={agent.model.id}>
        <SafeText limit={300}>{agent.model.id}</SafeText>
      </span>
      <span className="truncate text-muted">{agent.harness ?? "default"}</span>
      <span className="text-muted tabular-nums">
        <span className="md:hidden">version </span>
        {agent.version}
      </span>
      <span className="text-muted tabular-nums">
        <SessionCount agentId={agent.id} />
      </span>
      {agent.archived_at === null ? (
        <Time value={agent.updated_at} className="truncate text-muted" />
      ) : (
        <Mark icon={Archive} text="archived" />
      )}
    </>
  );
}

function SessionCount({ agentId }: { agentId: string }) {
  const { data } = useQuery(sessionCountsQuery({ agent_id: agentId }));
  return data === undefined ? (
    <Skeleton className="inline-block h-3 w-6" />
  ) : (
    <>
      {data.total.toLocaleString()}
      <span className="md:hidden"> {data.total === 1 ? "session" : "sessions"}</span>
    </>
  );
}
