// The list of a section: a bar, and rows that the keyboard selects and opens. The selected entry is in the address.
import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";

import type { Listing } from "@/api/contract";
import { cn } from "@/design/classes";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { SafeText } from "@/design/text/text";
import { compact } from "@/frame/search";
import { useListKeys } from "@/frame/use-list-keys";

import type { SectionAddress } from "./use-section";

/** What the section is for, or why the caller can only look, and its buttons. */
export function SectionBar({ text, children }: { text?: string | undefined; children?: ReactNode }) {
  return (
    <div className="flex min-h-12 shrink-0 flex-wrap items-center gap-x-4 gap-y-2 border-b px-4 py-2">
      <p className="min-w-60 flex-1 text-muted max-md:empty:hidden">{text}</p>
      {children !== undefined && <div className="flex items-center gap-4 max-md:w-full">{children}</div>}
    </div>
  );
}

export type ListQuery<T> = UseInfiniteQueryResult<InfiniteData<Listing<T>>>;

export function entriesOf<T>(list: ListQuery<T>): T[] {
  return list.data?.pages.flatMap((page) => page.data) ?? [];
}

interface EntryListProps<T> {
  label: string;
  /** Whether entries have pages of their own: `enter` opens that of the selected one. */
  hasPages?: boolean;
  list: ListQuery<T>;
  address: SectionAddress;
  /** The titles of the columns, and their widths as a class. */
  columns: readonly string[];
  grid: string;
  /** What is shown instead of a list without entries. */
  empty: ReactNode;
  children: (entry: T) => ReactNode;
}

export function EntryList<T extends { id: string }>(props: EntryListProps<T>) {
  const { label, hasPages = false, list, address, columns, grid, empty, children } = props;
  const entries = entriesOf(list);
  const selectedId = address.search.selected;
  useListKeys({
    next: "settings.work-next",
    previous: "settings.work-previous",
    ...(hasPages ? { open: "settings.work-open" } : {}),
    count: entries.length,
    selected: entries.findIndex((one) => one.id === selectedId),
    onSelect: (index) => {
      address.select(entries[index]?.id);
    },
    onOpen: (index) => {
      address.open({ item: entries[index]?.id });
    },
  });
  if (list.isPending) {
    return <SkeletonRows />;
  }
  if (list.data === undefined) {
    return (
      <ErrorPanel
        className="m-4"
        title={`${label} could not be loaded`}
        error={list.error}
        onRetry={() => void list.refetch()}
      />
    );
  }
  if (entries.length === 0) {
    return empty;
  }
  return (
    <>
      <ColumnTitles titles={columns} grid={grid} />
      <ul aria-label={label} className="min-h-0 flex-1 overflow-y-auto">
        {entries.map((entry) => (
          <EntryRow key={entry.id} isSelected={entry.id === selectedId} grid={grid}>
            {children(entry)}
          </EntryRow>
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
  );
}

/** The name of an entry that has a page. The whole row opens it. */
export function EntryLink({ address, id, name }: { address: SectionAddress; id: string; name: string }) {
  return (
    <Link
      to="/settings"
      search={compact({ section: address.section, item: id, all: address.search.all })}
      title={name}
      className="min-w-0 font-medium outline-offset-[-2px] after:absolute after:inset-0 max-md:basis-full"
    >
      <SafeText className="block truncate" limit={300}>
        {name}
      </SafeText>
    </Link>
  );
}

export function ColumnTitles({ titles, grid }: { titles: readonly string[]; grid: string }) {
  return (
    <div
      aria-hidden
      className={cn("grid h-8 shrink-0 items-center gap-x-3 border-b px-4 text-xs text-muted max-md:hidden", grid)}
    >
      {titles.map((title, index) => (
        <span key={index}>{title}</span>
      ))}
    </div>
  );
}

export function EntryRow({ isSelected, grid, children }: { isSelected: boolean; grid: string; children: ReactNode }) {
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
        "relative min-h-9 items-center gap-x-3 border-b border-l-2 border-l-transparent py-1.5 pr-4 pl-[14px] hover:bg-hover aria-[current]:border-l-accent aria-[current]:bg-selected",
        "max-md:flex max-md:flex-wrap max-md:gap-y-0.5 max-md:py-2 md:grid",
        grid,
      )}
    >
      {children}
    </li>
  );
}
