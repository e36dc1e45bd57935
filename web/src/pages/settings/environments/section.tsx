// Environments: where the commands of sessions run, and what they reach.
import { useSection } from "../shared/use-section";
import { EnvironmentEditor } from "./environment-editor";
import { EnvironmentList } from "./environment-list";
import { EnvironmentPage } from "./environment-page";

export default function EnvironmentsSection() {
  const address = useSection("environments");
  const { item, edit } = address.search;
  if (item === undefined) {
    return <EnvironmentList address={address} />;
  }
  return edit === true || item === "new" ? (
    <EnvironmentEditor key={item} environmentId={item} address={address} />
  ) : (
    <EnvironmentPage key={item} environmentId={item} address={address} />
  );
}
