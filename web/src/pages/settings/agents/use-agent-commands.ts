// Archives an agent after a confirmation that says what uses it.
import { useQueryClient } from "@tanstack/react-query";

import { keys } from "@/api/keys";
import { type Agent, agentSchedulesQuery, archiveAgent } from "@/api/queries/agents";
import { showToast } from "@/design/components/toast";

import { type Commands, useCommands } from "../work/use-commands";

export interface AgentCommands extends Pick<Commands, "confirmation" | "closeConfirmation"> {
  archive: (agent: Agent) => Promise<void>;
}

export function useAgentCommands(): AgentCommands {
  const queries = useQueryClient();
  const { confirm, confirmation, closeConfirmation } = useCommands(keys.agents);
  async function archive(agent: Agent): Promise<void> {
    // The confirmation is as useful without them.
    const schedules = await queries.query(agentSchedulesQuery(agent.id)).catch(() => null);
    const names = schedules?.data.map((one) => `“${one.name}”`) ?? [];
    const uses = names.length === 0 ? "" : ` Runs of its schedules then start no session: ${names.join(", ")}.`;
    confirm(
      {
        title: `Archive “${agent.name}”?`,
        text: `No new session can use it, for good. Sessions that it has continue.${uses}`,
        button: "Archive",
      },
      {
        send: () => archiveAgent(agent.id),
        failure: `“${agent.name}” was not archived`,
        done: () => showToast({ title: "Agent archived", description: agent.name }),
      },
    );
  }
  return { archive, confirmation, closeConfirmation };
}
