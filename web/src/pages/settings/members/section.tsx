// Members: people and service accounts, and their roles.
import { EmptyState } from "@/design/components/empty-state";

export default function MembersSection() {
  return (
    <EmptyState title="Members are people and service accounts" command="footplate members ls">
      This section is not in the dashboard yet. The command line and the API offer everything.
    </EmptyState>
  );
}
