// Moves between the list of a section, one of its entries, and forms. All of it is in the address.
import { getRouteApi, useNavigate } from "@tanstack/react-router";

import { compact } from "@/frame/search";

import type { SettingsSearch, SettingsSection } from "../search";

const route = getRouteApi("/frame/settings");

/** The id that stands for an entry that does not exist yet. */
export const NEW = "new";

type Change = { [K in keyof Omit<SettingsSearch, "section">]?: SettingsSearch[K] | undefined };

export interface SectionAddress {
  section: SettingsSection;
  search: SettingsSearch;
  /** Opens what `change` says and nothing else. */
  open: (change: Change) => void;
  /** Changes a part of the address in place. */
  replace: (change: Change) => void;
  /** Puts the keyboard on the row of an entry. */
  select: (id: string | undefined) => void;
  /** Also shows what is archived, revoked or disabled, or does not any more. */
  toggleAll: () => void;
  /** Shows the list, with the entry selected that was open. */
  close: () => void;
}

export function useSection(section: SettingsSection): SectionAddress {
  const search = route.useSearch();
  const navigate = useNavigate();
  function go(change: Change, replace: boolean): void {
    void navigate({ to: "/settings", search: compact({ ...change, section }), replace });
  }
  return {
    section,
    search,
    open: (change) => {
      go({ all: search.all, ...change }, false);
    },
    replace: (change) => {
      go({ ...search, ...change }, true);
    },
    select: (id) => {
      go({ ...search, selected: id }, true);
    },
    toggleAll: () => {
      go({ ...search, all: search.all === true ? undefined : true }, true);
    },
    close: () => {
      go({ all: search.all, selected: search.item === NEW ? undefined : search.item }, false);
    },
  };
}
