// Agents: what they are asked to do, their model and their tools.
import { useSection } from "../shared/use-section";
import { AgentEditor } from "./agent-editor";
import { AgentList } from "./agent-list";
import { AgentPage } from "./agent-page";
import { CompareVersions } from "./compare-versions";

export default function AgentsSection() {
  const address = useSection("agents");
  const { item, edit, versions } = address.search;
  if (item === undefined) {
    return <AgentList address={address} />;
  }
  if (edit === true || item === "new") {
    return <AgentEditor key={item} agentId={item} address={address} />;
  }
  return versions === undefined ? (
    <AgentPage key={item} agentId={item} address={address} />
  ) : (
    <CompareVersions key={item} agentId={item} versions={versions} address={address} />
  );
}
