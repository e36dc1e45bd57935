// Deletes an environment after a confirmation.
import { keys } from "@/api/keys";
import { deleteEnvironment, type Environment } from "@/api/queries/environments";
import { showToast } from "@/design/components/toast";

import { type Commands, useCommands } from "../work/use-commands";

export interface EnvironmentCommands extends Pick<Commands, "confirmation" | "closeConfirmation"> {
  remove: (environment: Environment, onRemoved: () => void) => void;
}

export function useEnvironmentCommands(): EnvironmentCommands {
  const { confirm, confirmation, closeConfirmation } = useCommands(keys.environments);
  return {
    remove: (environment, onRemoved) => {
      confirm(
        {
          title: `Delete “${environment.name}”?`,
          text: "No new session can use it, and schedules with it start none. Its sessions keep the configuration that they have.",
          button: "Delete",
        },
        {
          send: () => deleteEnvironment(environment.id),
          removedId: environment.id,
          failure: `“${environment.name}” was not deleted`,
          done: () => {
            showToast({ title: "Environment deleted", description: environment.name });
            onRemoved();
          },
        },
      );
    },
    confirmation,
    closeConfirmation,
  };
}
