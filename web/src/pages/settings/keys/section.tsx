// API keys: who may call the API, and as whom.
import { EmptyState } from "@/design/components/empty-state";

export default function KeysSection() {
  return (
    <EmptyState title="An API key identifies a program or a person" command="footplate api-keys ls">
      This section is not in the dashboard yet. The command line and the API offer everything.
    </EmptyState>
  );
}
