// Environments: where the commands of agents run.
import { EmptyState } from "@/design/components/empty-state";

export default function EnvironmentsSection() {
  return (
    <EmptyState title="An environment is where the commands of agents run" command="footplate environments ls">
      This section is not in the dashboard yet. The command line and the API offer everything.
    </EmptyState>
  );
}
