// Schedules: sessions that start at set times.
import { EmptyState } from "@/design/components/empty-state";
import { usePageTitle } from "@/frame/page-title";

export default function SchedulesPage() {
  usePageTitle("Schedules");
  return (
    <EmptyState title="Schedules start sessions at set times" command="footplate schedules list">
      This page is not in the dashboard yet. The command line and the API offer everything.
    </EmptyState>
  );
}
