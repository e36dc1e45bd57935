// Inbox: everything that needs a person, with all that is needed to decide.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useEffectEvent, useRef } from "react";

import { useActions } from "@/actions/use-actions";
import { api, required } from "@/api/client";
import type { InboxItem, InboxKind, InboxView } from "@/api/contract";
import { ApiError } from "@/api/errors";
import { keys } from "@/api/keys";
import { inboxCountsQuery, inboxItemQuery, inboxQuery } from "@/api/queries/inbox";
import { Button, buttonStyle } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { Select } from "@/design/components/select";
import { SkeletonRows } from "@/design/components/skeleton";
import { Tab, TabList, Tabs } from "@/design/components/tabs";
import { showToast } from "@/design/components/toast";
import { cn } from "@/design/classes";
import { usePageTitle } from "@/frame/page-title";
import { compact } from "@/frame/search";
import { useDecisions, wasDecidedHere } from "./decisions";
import { KINDS } from "./describe";
import { ItemDetail } from "./item-detail";
import { ItemList } from "./item-list";

const route = getRouteApi("/frame/inbox");
const NO_ITEMS: readonly InboxItem[] = [];

export default function InboxPage() {
  usePageTitle("Inbox");
  const search = route.useSearch();
  const { view = "needs_you", kind, project_id, item: wanted } = search;
  const navigate = useNavigate();
  const list = useInfiniteQuery(inboxQuery({ view, kind, project_id }));
  const counts = useQuery(inboxCountsQuery);
  const projects = useQuery({
    queryKey: keys.projects,
    queryFn: async ({ signal }) =>
      required(await api.GET("/v1/projects", { params: { query: { limit: 100 } }, signal })),
  });
  const items = list.data?.pages.flatMap((page) => page.data) ?? NO_ITEMS;
  const listed = items.find((item) => item.id === wanted);
  // A link to an item that is not in this list, such as one that is assigned to somebody else.
  const linked = useQuery({
    ...inboxItemQuery(wanted ?? ""),
    enabled: wanted !== undefined && listed === undefined && list.isSuccess && !wasDecidedHere(wanted),
  });
  const selected = listed ?? (wanted === undefined ? items[0] : linked.data);
  const isFiltered = kind !== undefined || project_id !== undefined;

  function select(id: string | undefined): void {
    void navigate({ to: "/inbox", search: compact({ ...search, item: id }), replace: true });
  }
  function show(change: { view?: InboxView; kind?: InboxKind | undefined; project_id?: string | undefined }): void {
    const next = { view, kind, project_id, ...change };
    void navigate({
      to: "/inbox",
      search: compact({ ...next, view: next.view === "needs_you" ? undefined : next.view }),
    });
  }
  function move(step: number): void {
    const index = items.findIndex((item) => item.id === selected?.id);
    const next = items[Math.min(Math.max(index + step, 0), items.length - 1)];
    if (next !== undefined) {
      select(next.id);
    }
    if (index + step >= items.length - 1 && list.hasNextPage) {
      void list.fetchNextPage();
    }
  }
  const decisions = useDecisions((item) => {
    const index = items.findIndex((one) => one.id === item.id);
    const next = items[index + 1] ?? items[index - 1];
    // Without a next item, a phone goes back to the list.
    select(wanted === undefined ? undefined : next?.id);
  });
  useActions({
    "inbox.next": () => {
      move(1);
    },
    "inbox.previous": () => {
      move(-1);
    },
    "inbox.needs-you": () => {
      show({ view: "needs_you" });
    },
    "inbox.mine": () => {
      show({ view: "mine" });
    },
    "inbox.snoozed": () => {
      show({ view: "snoozed" });
    },
    "inbox.filter-kind": () => {
      document.getElementById("inbox-kind")?.click();
    },
    "inbox.filter-project": () => {
      document.getElementById("inbox-project")?.click();
    },
    ...(isFiltered
      ? {
          "inbox.clear-filters": () => {
            show({ kind: undefined, project_id: undefined });
          },
        }
      : {}),
  });
  useDisappearanceNotes(items, list.isSuccess, `${view} ${kind ?? ""} ${project_id ?? ""}`);

  const names = new Map(projects.data?.data.map((project) => [project.id, project.name]) ?? []);
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className={cn("flex flex-wrap items-center border-b pr-4", wanted !== undefined && "max-md:hidden")}>
        <Tabs
          value={view}
          onValueChange={(next: InboxView) => {
            show({ view: next });
          }}
        >
          <TabList label="Views" className="border-b-0">
            <Tab value="needs_you" count={counts.data?.needs_you}>
              Needs you
            </Tab>
            <Tab value="mine" count={counts.data?.mine}>
              Assigned to me
            </Tab>
            <Tab value="snoozed" count={counts.data?.snoozed}>
              Snoozed
            </Tab>
          </TabList>
        </Tabs>
        <div className="ml-auto flex gap-2 py-1 max-md:ml-4 max-md:w-full">
          <Select
            id="inbox-kind"
            label="Kind"
            className="max-md:flex-1"
            options={Object.entries(KINDS).map(([value, { plural }]) => ({ value: value as InboxKind, label: plural }))}
            value={kind ?? null}
            clearLabel="All kinds"
            onChange={(next) => {
              show({ kind: next ?? undefined });
            }}
          />
          <Select
            id="inbox-project"
            label="Project"
            className="max-w-48 max-md:flex-1"
            options={[...names].map(([value, label]) => ({ value, label }))}
            value={project_id ?? null}
            clearLabel="All projects"
            onChange={(next) => {
              show({ project_id: next ?? undefined });
            }}
          />
        </div>
      </div>
      <div className="flex min-h-0 flex-1">
        <section
          aria-label="Items"
          className={cn(
            "min-h-0 overflow-y-auto",
            (items.length > 0 || list.isPending) &&
              "w-96 shrink-0 border-r max-lg:w-80 max-md:w-full max-md:border-r-0",
            items.length === 0 && !list.isPending && (linked.data === undefined ? "flex-1" : "hidden"),
            wanted !== undefined && "max-md:hidden",
          )}
        >
          {list.isPending && <SkeletonRows />}
          {list.error !== null && list.data === undefined && (
            <ErrorPanel
              className="m-4"
              title="The inbox could not be loaded"
              error={list.error}
              onRetry={() => void list.refetch()}
            />
          )}
          {list.isSuccess && items.length === 0 && (
            <Nothing
              view={view}
              isFiltered={isFiltered}
              onClear={() => {
                show({ kind: undefined, project_id: undefined });
              }}
            />
          )}
          {items.length > 0 && (
            <ItemList
              items={items}
              selectedId={selected?.id ?? null}
              hasMore={list.hasNextPage}
              onMore={() => void list.fetchNextPage()}
            />
          )}
        </section>
        <section
          aria-label="Selected item"
          className={cn("min-h-0 min-w-0 flex-1 overflow-y-auto", wanted === undefined && "max-md:hidden")}
        >
          {selected !== undefined && (
            <ItemDetail
              key={selected.id}
              item={selected}
              projectName={names.get(selected.session.project_id ?? "") ?? null}
              decisions={decisions}
              onBack={() => {
                select(undefined);
              }}
            />
          )}
          {selected === undefined && linked.error !== null && (
            <Gone
              error={linked.error}
              onNext={() => {
                select(undefined);
              }}
            />
          )}
        </section>
      </div>
    </div>
  );
}

function Gone({ error, onNext }: { error: unknown; onNext: () => void }) {
  if (!(error instanceof ApiError && error.status === 404)) {
    return <ErrorPanel className="m-4" title="The item could not be loaded" error={error} />;
  }
  return (
    <EmptyState title="This does not wait any more" action={<Button onClick={onNext}>Show what waits now</Button>}>
      It was decided, answered or dismissed, or its session runs again.
    </EmptyState>
  );
}

function Nothing({ view, isFiltered, onClear }: { view: InboxView; isFiltered: boolean; onClear: () => void }) {
  if (isFiltered) {
    return (
      <EmptyState title="Nothing matches these filters" action={<Button onClick={onClear}>Clear the filters</Button>} />
    );
  }
  if (view !== "needs_you") {
    return (
      <EmptyState title={view === "mine" ? "Nothing is assigned to you" : "Nothing is snoozed"}>
        {view === "mine"
          ? "Press M on an item to assign it to you or to somebody else."
          : "Press Z on an item to hide it for everyone until later."}
      </EmptyState>
    );
  }
  return (
    <EmptyState
      title="Nothing needs you"
      command="footplate policy explain 'git push origin main'"
      action={
        <Link to="/new" className={buttonStyle({ variant: "primary" })}>
          Start a session
        </Link>
      }
    >
      Calls that need approval, questions of agents and failures appear here as they happen. This command shows whether
      a call would ask.
    </EmptyState>
  );
}

/** Says so when items go that this window did not decide. */
function useDisappearanceNotes(items: readonly InboxItem[], isReady: boolean, listKey: string): void {
  const known = useRef<{ key: string; items: readonly InboxItem[] }>({ key: "", items: [] });
  const note = useEffectEvent((gone: readonly InboxItem[]) => {
    const [first] = gone;
    if (first === undefined) {
      return;
    }
    if (gone.length > 1) {
      showToast({
        title: `${gone.length} items are done`,
        description: "Somebody else decided them, or they expired.",
      });
      return;
    }
    void describeEnd(first).then((title) => showToast({ title, description: first.title }));
  });
  useEffect(() => {
    if (!isReady) {
      return;
    }
    const before = known.current;
    known.current = { key: listKey, items };
    if (before.key === listKey) {
      const present = new Set(items.map((item) => item.id));
      note(before.items.filter((item) => !present.has(item.id) && !wasDecidedHere(item.id)));
    }
  }, [items, isReady, listKey]);
}

async function describeEnd(item: InboxItem): Promise<string> {
  try {
    if (item.kind === "approval") {
      const { data } = await api.GET("/v1/approvals/{approval_id}", { params: { path: { approval_id: item.id } } });
      const words = { allowed: "Allowed", denied: "Denied" } as const;
      const status = data?.status;
      if (status === "allowed" || status === "denied") {
        return data?.answered_by === "clock" ? `${words[status]}: it expired` : `${words[status]} by somebody else`;
      }
      return status === "closed"
        ? "The turn ended, so this call does not wait any more"
        : "The call is snoozed or assigned";
    }
    if (item.kind === "question") {
      return "The question does not wait any more";
    }
  } catch {
    // The session is gone too.
  }
  return "This does not wait any more";
}
