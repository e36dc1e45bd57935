// The list of a section: rows that open, by pointer and keyboard, with what can be done above them.
import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";

import { useActions } from "@/actions/use-actions";
import type { Listing } from "@/api/contract";
import { cn } from "@/design/classes";
import { Button } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { Switch } from "@/design/components/switch";
import { SafeText } from "@/design/text/text";
import { compact } from "@/frame/search";
import { useListKeys } from "@/frame/use-list-keys";

import type { SettingsSection } from "../search";
import { NEW, type SectionAddress } from "./use-section";

interface Entry {
  id: string;
}

interface EntryListProps<T extends Entry> {
  section: SettingsSection;
  address: SectionAddress;
  /** What the entries are, such as "agents". */
  noun: string;
  list: UseInfiniteQueryResult<InfiniteData<Listing<T>>>;
  /** The widths of the columns, as a class of a grid. */
  columns: string;
  headings: readonly string[];
  nameOf: (entry: T) => string;
  /** The cells after the name. */
  renderCells: (entry: T) => ReactNode;
  /** Creates an entry. Undefined: the caller may not, for the reason in `note`. */
  creation?: { action: string; label: string } | undefined;
  note?: string | undefined;
  /** Whether the list can show archived entries. */
  hasArchive: boolean;
  empty: ReactNode;
}

export function EntryList<T extends Entry>(props: EntryListProps<T>) {
  const { section, address, noun, list, columns, headings, nameOf, renderCells, creation, note, hasArchive, empty } =
    props;
  const { search, open, replace } = address;
  const entries = list.data?.pages.flatMap((page) => page.data) ?? [];
  useListKeys({
    next: "settings.work-next",
    previous: "settings.work-previous",
    open: "settings.work-open",
    count: entries.length,
    selected: entries.findIndex((one) => one.id === search.selected),
    onSelect: (index) => {
      replace({ selected: entries[index]?.id });
    },
    onOpen: (index) => {
      open({ item: entries[index]?.id });
    },
  });
  function toggleArchived(): void {
    replace({ all: search.all === true ? undefined : true });
  }
  function create(): void {
    open({ item: NEW });
  }
  useActions({
    ...(hasArchive ? { "settings.work-archived": toggleArchived } : {}),
    ...(creation === undefined ? {} : { [creation.action]: create }),
  });
  const isEmpty = list.isSuccess && entries.length === 0;
  const hasToolbar = hasArchive || note !== undefined || (creation !== undefined && !isEmpty);
  return (
    <>
      {hasToolbar && (
        <div className="flex min-h-11 shrink-0 flex-wrap items-center gap-x-4 gap-y-1 border-b px-4 py-1">
          <span className="min-w-0 flex-1 text-sm text-muted">{note}</span>
          {hasArchive && (
            <Switch checked={search.all === true} onCheckedChange={toggleArchived}>
              Archived
            </Switch>
          )}
          {creation !== undefined && !isEmpty && (
            <Button variant="primary" className="max-md:h-11" onClick={create}>
              {creation.label}
            </Button>
          )}
        </div>
      )}
      {list.isPending && <SkeletonRows />}
      {list.error !== null && list.data === undefined && (
        <ErrorPanel
          className="m-4"
          title={`The ${noun} could not be loaded`}
          error={list.error}
          onRetry={() => void list.refetch()}
        />
      )}
      {isEmpty && empty}
      {entries.length > 0 && (
        <>
          <div
            aria-hidden
            className={cn(
              "grid items-center gap-x-3 px-4",
              columns,
              "h-8 shrink-0 border-b border-l-2 border-l-transparent text-xs text-muted max-md:hidden",
            )}
          >
            {headings.map((heading) => (
              <span key={heading}>{heading}</span>
            ))}
          </div>
          <ul aria-label={noun.charAt(0).toUpperCase() + noun.slice(1)}>
            {entries.map((entry) => (
              <Row key={entry.id} isSelected={entry.id === search.selected} columns={columns}>
                <Link
                  to="/settings"
                  search={compact({ section, item: entry.id, all: search.all })}
                  title={nameOf(entry)}
                  className="min-w-0 font-medium outline-offset-[-2px] after:absolute after:inset-0 max-md:basis-full"
                >
                  <SafeText className="block truncate" limit={300}>
                    {nameOf(entry)}
                  </SafeText>
                </Link>
                {renderCells(entry)}
              </Row>
            ))}
            {list.hasNextPage && (
              <li>
                <button
                  type="button"
                  className="h-11 w-full text-accent hover:bg-hover"
                  disabled={list.isFetchingNextPage}
                  onClick={() => void list.fetchNextPage()}
                >
                  Show more
                </button>
              </li>
            )}
          </ul>
        </>
      )}
    </>
  );
}

function Row({ isSelected, columns, children }: { isSelected: boolean; columns: string; children: ReactNode }) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isSelected) {
      row.current?.scrollIntoView({ block: "nearest" });
    }
  }, [isSelected]);
  return (
    <li
      ref={row}
      aria-current={isSelected ? "true" : undefined}
      className={cn(
        "relative grid min-h-9 items-center gap-x-3 border-b border-l-2 border-l-transparent px-4 py-1.5 hover:bg-hover aria-[current]:border-l-accent aria-[current]:bg-selected",
        columns,
        "max-md:flex max-md:flex-wrap max-md:gap-y-0.5 max-md:py-2",
      )}
    >
      {children}
    </li>
  );
}
