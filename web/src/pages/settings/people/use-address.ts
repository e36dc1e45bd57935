// The address of a section: its selected entry, and whether it shows entries that no longer count.
import { getRouteApi } from "@tanstack/react-router";

import { compact } from "@/frame/search";

const route = getRouteApi("/frame/settings");

export interface SectionAddress {
  selectedId: string | undefined;
  showsAll: boolean;
  select: (id: string | undefined) => void;
  showAll: (isOn: boolean) => void;
}

export function useSectionAddress(): SectionAddress {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  return {
    selectedId: search.selected,
    showsAll: search.all === true,
    select: (id) => void navigate({ search: (previous) => compact({ ...previous, selected: id }), replace: true }),
    showAll: (isOn) =>
      void navigate({ search: (previous) => compact({ ...previous, all: isOn ? (true as const) : undefined }) }),
  };
}
