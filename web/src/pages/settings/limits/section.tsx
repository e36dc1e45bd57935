// Limits: what the organisation and its members may use at the same time.
import { EmptyState } from "@/design/components/empty-state";

export default function LimitsSection() {
  return (
    <EmptyState title="Limits are what the organisation may use at once" command="footplate limits">
      This section is not in the dashboard yet. The command line and the API offer everything.
    </EmptyState>
  );
}
