// What the page shows when there is no agent yet: what one is, and how to create the first one.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { keys } from "@/api/keys";
import { createAgent, modelsQuery } from "@/api/queries/new-session";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { Select } from "@/design/components/select";

export function FirstAgent({ canOperate, onCreated }: { canOperate: boolean; onCreated: (id: string) => void }) {
  return (
    <EmptyState
      title="First, an agent"
      command='footplate run "Make the tests pass"'
      {...(canOperate ? { action: <CreateAgent onCreated={onCreated} /> } : {})}
    >
      An agent is a model with instructions, tools and rules.{" "}
      {canOperate
        ? "The command creates one with the usual tools when it is first used, and so does the button."
        : "Your role does not permit to create one. Ask an administrator."}
    </EmptyState>
  );
}

function CreateAgent({ onCreated }: { onCreated: (id: string) => void }) {
  const queries = useQueryClient();
  const models = useQuery(modelsQuery);
  const options = models.data?.data.map(({ id, display_name }) => ({ value: id, label: display_name })) ?? [];
  const [chosen, setChosen] = useState<string | null>(null);
  const model = chosen ?? options[0]?.value ?? null;
  const create = useMutation({
    mutationFn: (name: string) => createAgent("engineer", name),
    onSuccess: async (agent) => {
      await queries.invalidateQueries({ queryKey: keys.agents });
      onCreated(agent.id);
    },
  });
  if (models.isSuccess && options.length === 0) {
    return <p className="max-w-96 text-muted">This server has no model yet. Its operator adds an API key for one.</p>;
  }
  return (
    <div className="flex flex-col items-center gap-3">
      <div className="flex gap-2">
        <Select label="Model" options={options} value={model} placeholder="Model" onChange={setChosen} />
        <Button
          variant="primary"
          className="max-md:h-11"
          disabled={model === null || create.isPending}
          onClick={() => {
            if (model !== null) {
              create.mutate(model);
            }
          }}
        >
          Create an agent
        </Button>
      </div>
      {create.error !== null && <ErrorPanel title="The agent was not created" error={create.error} />}
    </div>
  );
}
