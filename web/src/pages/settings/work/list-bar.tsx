// What can be done with a list of entries: creating one, and showing archived ones.
import { useActions } from "@/actions/use-actions";
import { Button } from "@/design/components/button";
import { Switch } from "@/design/components/switch";

import { entriesOf, type ListQuery, SectionBar } from "../shared/entry-list";
import { NEW, type SectionAddress } from "../shared/use-section";

interface ListBarProps {
  address: SectionAddress;
  list: ListQuery<unknown>;
  /** Creates an entry. Undefined: the caller may not, for the reason in `note`. */
  creation?: { action: string; label: string } | undefined;
  note?: string | undefined;
  /** Whether the list can show archived entries. */
  hasArchive: boolean;
}

export function ListBar({ address, list, creation, note, hasArchive }: ListBarProps) {
  // An empty list has a button of its own.
  const hasButton = creation !== undefined && !(list.isSuccess && entriesOf(list).length === 0);
  function create(): void {
    address.open({ item: NEW });
  }
  useActions({
    ...(hasArchive ? { "settings.work-archived": address.toggleAll } : {}),
    ...(creation === undefined ? {} : { [creation.action]: create }),
  });
  if (!hasArchive && note === undefined && !hasButton) {
    return null;
  }
  return (
    <SectionBar text={note}>
      {hasArchive && (
        <Switch checked={address.search.all === true} onCheckedChange={address.toggleAll}>
          Show archived
        </Switch>
      )}
      {hasButton && (
        <Button variant="primary" className="max-md:ml-auto max-md:h-11" onClick={create}>
          {creation.label}
        </Button>
      )}
    </SectionBar>
  );
}
