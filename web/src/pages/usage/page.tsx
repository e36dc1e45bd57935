// Usage: tokens and cost.
import { EmptyState } from "@/design/components/empty-state";
import { usePageTitle } from "@/frame/page-title";

export default function UsagePage() {
  usePageTitle("Usage");
  return (
    <EmptyState title="Usage shows tokens and cost" command="footplate usage">
      This page is not in the dashboard yet. The command line and the API offer everything.
    </EmptyState>
  );
}
