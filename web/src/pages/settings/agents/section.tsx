// Agents: what they are asked to do, their model and their tools.
import { EmptyState } from "@/design/components/empty-state";

export default function AgentsSection() {
  return (
    <EmptyState title="An agent has instructions, a model and tools" command="footplate agents ls">
      This section is not in the dashboard yet. The command line and the API offer everything.
    </EmptyState>
  );
}
