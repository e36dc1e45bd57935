// Archives a project after a confirmation, and says who may change it.
import { useQuery } from "@tanstack/react-query";

import { keys } from "@/api/keys";
import { meQuery } from "@/api/queries/me";
import { archiveProject, type Project } from "@/api/queries/projects";
import { showToast } from "@/design/components/toast";

import { type Commands, useCommands } from "../work/use-commands";

export interface ProjectRights {
  canChange: boolean;
  /** If a project has rules, what its sessions start with is a part of them. */
  canChangeRules: boolean;
}

/** Null: not known yet. */
export function useProjectRights(): ProjectRights | null {
  const { data: me } = useQuery(meQuery);
  if (me === undefined) {
    return null;
  }
  const canChangeRules = me.permissions.includes("change_policy");
  return { canChange: canChangeRules || me.permissions.includes("operate"), canChangeRules };
}

export interface ProjectCommands extends Pick<Commands, "confirmation" | "closeConfirmation"> {
  archive: (project: Project) => void;
}

export function useProjectCommands(): ProjectCommands {
  const { confirm, confirmation, closeConfirmation } = useCommands(keys.projects);
  return {
    archive: (project) => {
      confirm(
        {
          title: `Archive “${project.name}”?`,
          text: "No new session can use it, for good. Its sessions continue, and the repository stays as it is. The caches of its setup are deleted.",
          button: "Archive",
        },
        {
          send: () => archiveProject(project.id),
          failure: `“${project.name}” was not archived`,
          done: () => showToast({ title: "Project archived", description: project.name }),
        },
      );
    },
    confirmation,
    closeConfirmation,
  };
}
