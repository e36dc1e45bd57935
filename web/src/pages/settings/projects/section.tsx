// Projects: the repositories that sessions work on.
import { useSection } from "../shared/use-section";
import { ProjectEditor } from "./project-editor";
import { ProjectList } from "./project-list";
import { ProjectPage } from "./project-page";

export default function ProjectsSection() {
  const address = useSection("projects");
  const { item, edit } = address.search;
  if (item === undefined) {
    return <ProjectList address={address} />;
  }
  return edit === true || item === "new" ? (
    <ProjectEditor key={item} projectId={item} address={address} />
  ) : (
    <ProjectPage key={item} projectId={item} address={address} />
  );
}
