// Policy: the rules by layer, and the audit trail.
import { EmptyState } from "@/design/components/empty-state";
import { usePageTitle } from "@/frame/page-title";

export default function PolicyPage() {
  usePageTitle("Policy");
  return (
    <EmptyState title="Policy decides what agents may do" command="footplate policy show">
      This page is not in the dashboard yet. The command line and the API offer everything.
    </EmptyState>
  );
}
