// Settings: agents, environments, projects, webhooks, keys, members.
import { EmptyState } from "@/design/components/empty-state";
import { usePageTitle } from "@/frame/page-title";

export default function SettingsPage() {
  usePageTitle("Settings");
  return (
    <EmptyState title="Settings hold agents, projects and keys" command="footplate agents list">
      This page is not in the dashboard yet. The command line and the API offer everything.
    </EmptyState>
  );
}
