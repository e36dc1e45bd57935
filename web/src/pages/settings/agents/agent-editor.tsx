// Loads what the form of an agent needs, and says why it cannot be shown.
import { useQuery, useQueryClient } from "@tanstack/react-query";

import { keys } from "@/api/keys";
import { type Agent, agentQuery, allModelsQuery } from "@/api/queries/agents";
import { meQuery } from "@/api/queries/me";
import { showToast } from "@/design/components/toast";

import { LoadedEntry } from "../work/loaded-entry";
import { findRefusal } from "../work/refusal";
import { NEW, type SectionAddress } from "../shared/use-section";
import { AgentForm } from "./agent-form";

export function AgentEditor({ agentId, address }: { agentId: string; address: SectionAddress }) {
  const isNew = agentId === NEW;
  const me = useQuery(meQuery);
  const models = useQuery(allModelsQuery);
  const queries = useQueryClient();
  // What others change meanwhile must not replace what is being typed.
  const agent = useQuery({
    ...agentQuery(agentId),
    enabled: !isNew,
    staleTime: "static",
    refetchOnMount: "always",
  });
  const refusal = findRefusal({
    noun: "agent",
    canChange: me.data?.permissions.includes("operate") ?? true,
    roles: "operator or member",
    isArchived: agent.data !== undefined && agent.data.archived_at !== null,
    onClose: address.close,
  });
  if (refusal !== null) {
    return refusal;
  }
  function finish(saved: Agent): void {
    void queries.invalidateQueries({ queryKey: keys.agents });
    const isSame = agent.data?.version === saved.version;
    showToast({
      title: isNew ? "Agent created" : isSame ? "Nothing changed" : `Agent saved as version ${saved.version}`,
      description: saved.name,
    });
    address.open({ item: saved.id });
  }
  const names = models.data?.data.map((one) => one.id) ?? [];
  const form = (stored: Agent | null) => (
    <AgentForm
      agent={stored}
      models={names}
      onSaved={finish}
      onCancel={() => {
        if (isNew) {
          address.close();
        } else {
          address.open({ item: agentId });
        }
      }}
    />
  );
  if (isNew) {
    return form(null);
  }
  return (
    <LoadedEntry
      query={{ ...agent, data: agent.isFetching ? undefined : agent.data }}
      noun="agent"
      onClose={address.close}
    >
      {form}
    </LoadedEntry>
  );
}
