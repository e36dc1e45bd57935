// Health: workers, queues, sessions that do not move, versions.
import { EmptyState } from "@/design/components/empty-state";
import { usePageTitle } from "@/frame/page-title";

export default function HealthPage() {
  usePageTitle("Health");
  return (
    <EmptyState title="Health shows workers and queues" command="footplate doctor">
      This page is not in the dashboard yet. The command line and the API offer everything.
    </EmptyState>
  );
}
