// Projects: repositories that sessions work on.
import { EmptyState } from "@/design/components/empty-state";

export default function ProjectsSection() {
  return (
    <EmptyState title="A project is a repository that sessions work on" command="footplate projects ls">
      This section is not in the dashboard yet. The command line and the API offer everything.
    </EmptyState>
  );
}
