// The audit trail: who or what decided, changed or was refused, with filters in the address.
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { ArrowDown, ArrowUp } from "lucide-react";
import { useState } from "react";

import { useActions } from "@/actions/use-actions";
import { type AuditEntry, type AuditFilters, auditQuery } from "@/api/queries/policy";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { compact } from "@/frame/search";
import { useListKeys } from "@/frame/use-list-keys";

import type { PolicySearch } from "../search";
import { AuditFilterBar } from "./filter-bar";
import { AUDIT_COLUMNS, EntryRow } from "./entry-row";
import { timeOfDay } from "./describe";
import { useExport } from "./use-export";
import { VerifyDialog } from "./verify-dialog";

const route = getRouteApi("/frame/policy");
const NONE: readonly AuditEntry[] = [];
type Change = { [K in keyof PolicySearch]?: PolicySearch[K] | undefined };

export default function AuditSection() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [isVerifying, setVerifying] = useState(false);
  const filters: AuditFilters = {
    kind: search.kind,
    outcome: search.outcome,
    member: search.member,
    tool: search.tool,
    session_id: search.session,
    "created_at[gte]": timeOfDay(search.from, "start"),
    "created_at[lte]": timeOfDay(search.until, "end"),
    order: search.order,
  };
  const isFiltered = Object.entries(filters).some(([name, value]) => name !== "order" && value !== undefined);
  const list = useInfiniteQuery(auditQuery(filters));
  const entries = list.data?.pages.flatMap((page) => page.data) ?? NONE;
  const exporting = useExport(filters);

  function go(change: Change, replace = false): void {
    void navigate({ search: compact({ ...search, ...change }), replace });
  }
  function toggle(id: string): void {
    const isOpen = search.item === id && search.open === true;
    go({ item: id, open: isOpen ? undefined : true }, true);
  }
  function reverse(): void {
    go({ order: search.order === "asc" ? undefined : "asc" });
  }
  useListKeys({
    next: "policy.next-entry",
    previous: "policy.previous-entry",
    open: "policy.open-entry",
    count: entries.length,
    selected: entries.findIndex((one) => one.id === search.item),
    onSelect: (index) => {
      // Enter then belongs to the entry, not to the filter that was used last.
      (document.activeElement as HTMLElement | null)?.blur();
      go({ item: entries[index]?.id }, true);
    },
    onOpen: (index) => {
      toggle(entries[index]?.id ?? "");
    },
  });
  useActions({
    "policy.export": exporting.start,
    "policy.verify": () => {
      setVerifying(true);
    },
    "policy.reverse": reverse,
  });
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex flex-wrap items-center gap-2 border-b px-4 py-2 max-md:grid max-md:grid-cols-2">
        <AuditFilterBar
          search={search}
          onChange={(change) => {
            go({ ...change, item: undefined, open: undefined });
          }}
        />
        <div className="ml-auto flex flex-wrap items-center gap-2 max-md:col-span-2 max-md:ml-0">
          <Button variant="quiet" onClick={reverse}>
            {search.order === "asc" ? <ArrowUp /> : <ArrowDown />}
            {search.order === "asc" ? "Oldest first" : "Newest first"}
          </Button>
          {exporting.count === null ? (
            <Button onClick={exporting.start}>Export</Button>
          ) : (
            <>
              <span role="status" className="text-sm text-muted">
                {exporting.count.toLocaleString("en-US")} entries
              </span>
              <Button onClick={exporting.cancel}>Cancel</Button>
            </>
          )}
          <Button
            onClick={() => {
              setVerifying(true);
            }}
          >
            Verify the trail …
          </Button>
        </div>
      </div>
      {list.isPending && <SkeletonRows />}
      {list.error !== null && list.data === undefined && (
        <ErrorPanel
          className="m-4"
          title="The audit trail could not be loaded"
          error={list.error}
          onRetry={() => void list.refetch()}
        />
      )}
      {list.isSuccess && entries.length === 0 && (
        <EmptyState
          title={isFiltered ? "No entry matches these filters" : "No entries yet"}
          command="footplate audit ls"
          action={
            isFiltered && (
              <Button onClick={() => void navigate({ search: { section: "audit" } })}>Show all entries</Button>
            )
          }
        >
          The trail has every decision on a call, every change of rules, and every refused request.
        </EmptyState>
      )}
      {entries.length > 0 && (
        <>
          <div aria-hidden className={`${AUDIT_COLUMNS} h-8 shrink-0 border-b text-xs text-muted max-lg:hidden`}>
            <span>Time</span>
            <span>Outcome</span>
            <span>By</span>
            <span>Member</span>
            <span>What</span>
            <span>Session</span>
          </div>
          <ul aria-label="Audit trail" className="min-h-0 flex-1 overflow-y-auto">
            {entries.map((entry) => (
              <EntryRow
                key={entry.id}
                entry={entry}
                isSelected={entry.id === search.item}
                isOpen={entry.id === search.item && search.open === true}
                onToggle={() => {
                  toggle(entry.id);
                }}
              />
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
      {isVerifying && (
        <VerifyDialog
          onClose={() => {
            setVerifying(false);
          }}
        />
      )}
    </div>
  );
}
