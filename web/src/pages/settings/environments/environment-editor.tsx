// Loads what the form of an environment needs, and says why it cannot be shown.
import { useQuery, useQueryClient } from "@tanstack/react-query";

import { keys } from "@/api/keys";
import { type Environment, environmentQuery } from "@/api/queries/environments";
import { meQuery } from "@/api/queries/me";
import { backendsQuery } from "@/api/queries/new-session";
import { showToast } from "@/design/components/toast";

import { LoadedEntry } from "../work/loaded-entry";
import { findRefusal } from "../work/refusal";
import { NEW, type SectionAddress } from "../shared/use-section";
import { EnvironmentForm } from "./environment-form";

export function EnvironmentEditor({ environmentId, address }: { environmentId: string; address: SectionAddress }) {
  const isNew = environmentId === NEW;
  const me = useQuery(meQuery);
  const backends = useQuery(backendsQuery);
  const queries = useQueryClient();
  // What others change meanwhile must not replace what is being typed.
  const environment = useQuery({
    ...environmentQuery(environmentId),
    enabled: !isNew,
    staleTime: "static",
    refetchOnMount: "always",
  });
  const refusal = findRefusal({
    noun: "environment",
    canChange: me.data?.permissions.includes("operate") ?? true,
    roles: "operator or member",
    isArchived: environment.data !== undefined && environment.data.archived_at !== null,
    onClose: address.close,
  });
  if (refusal !== null) {
    return refusal;
  }
  const form = (stored: Environment | null) => (
    <EnvironmentForm
      environment={stored}
      backends={backends.data?.data ?? []}
      onSaved={(saved) => {
        void queries.invalidateQueries({ queryKey: keys.environments });
        showToast({ title: isNew ? "Environment created" : "Environment saved", description: saved.name });
        address.open({ item: saved.id });
      }}
      onCancel={() => {
        if (isNew) {
          address.close();
        } else {
          address.open({ item: environmentId });
        }
      }}
    />
  );
  return isNew ? (
    form(null)
  ) : (
    <LoadedEntry
      query={{ ...environment, data: environment.isFetching ? undefined : environment.data }}
      noun="environment"
      onClose={address.close}
    >
      {form}
    </LoadedEntry>
  );
}
