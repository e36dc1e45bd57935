// New session: one field for the task, and sensible choices beneath it.
import { EmptyState } from "@/design/components/empty-state";
import { usePageTitle } from "@/frame/page-title";

export default function NewSessionPage() {
  usePageTitle("New session");
  return <EmptyState title="Describe a task, and an agent works on it" command='footplate run "Make the tests pass"' />;
}
