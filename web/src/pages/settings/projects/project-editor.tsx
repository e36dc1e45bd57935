// Loads what the form of a project needs, and says why it cannot be shown.
import { useQuery, useQueryClient } from "@tanstack/react-query";

import { keys } from "@/api/keys";
import { type Project, projectQuery } from "@/api/queries/projects";
import { showToast } from "@/design/components/toast";

import { LoadedEntry } from "../work/loaded-entry";
import { findRefusal } from "../work/refusal";
import { NEW, type SectionAddress } from "../shared/use-section";
import { ProjectForm } from "./project-form";
import { useProjectRights } from "./use-project-commands";

export function ProjectEditor({ projectId, address }: { projectId: string; address: SectionAddress }) {
  const isNew = projectId === NEW;
  const rights = useProjectRights();
  const queries = useQueryClient();
  // What others change meanwhile must not replace what is being typed.
  const project = useQuery({
    ...projectQuery(projectId),
    enabled: !isNew,
    staleTime: "static",
    refetchOnMount: "always",
  });
  const refusal = findRefusal({
    noun: "project",
    canChange: rights?.canChange ?? true,
    roles: "operator, member or policy_admin",
    isArchived: project.data !== undefined && project.data.archived_at !== null,
    onClose: address.close,
  });
  if (refusal !== null) {
    return refusal;
  }
  const form = (stored: Project | null) => (
    <ProjectForm
      project={stored}
      canChangeRules={rights?.canChangeRules ?? true}
      onSaved={(saved) => {
        void queries.invalidateQueries({ queryKey: keys.projects });
        showToast({ title: isNew ? "Project created" : "Project saved", description: saved.name });
        address.open({ item: saved.id });
      }}
      onCancel={() => {
        if (isNew) {
          address.close();
        } else {
          address.open({ item: projectId });
        }
      }}
    />
  );
  return isNew ? (
    form(null)
  ) : (
    <LoadedEntry
      query={{ ...project, data: project.isFetching ? undefined : project.data }}
      noun="project"
      onClose={address.close}
    >
      {form}
    </LoadedEntry>
  );
}
