// Teams: lists of members who see the same sessions.
import { EmptyState } from "@/design/components/empty-state";

export default function TeamsSection() {
  return (
    <EmptyState title="A team is a list of members who see the same sessions" command="footplate teams ls">
      This section is not in the dashboard yet. The command line and the API offer everything.
    </EmptyState>
  );
}
