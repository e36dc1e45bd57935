// Forks: the sessions that share this one's history as a small graph, with the point where each went its own way.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { useActions } from "@/actions/use-actions";
import type { Session } from "@/api/session-state";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { useListKeys } from "@/frame/use-list-keys";
import { CompareButton, usePicked } from "../children/compare";
import { layOut } from "./family";
import { ForkRow } from "./fork-row";
import { familyQuery, useFamilyChanges } from "./queries";

const MAX_CHANGES_READ = 30;
const route = getRouteApi("/frame/sessions/$sessionId");

export default function ForksTab({ session }: { session: Session }) {
  const navigate = useNavigate();
  const { sessionId } = route.useParams();
  const { data: family, error, isPending, refetch } = useQuery(familyQuery(session));
  useFamilyChanges(session.id, family);
  const picked = usePicked();
  const [selectedId, setSelected] = useState(sessionId);
  const rows = family === undefined ? [] : layOut(family);
  useListKeys({
    next: "session.next-fork",
    previous: "session.previous-fork",
    open: "session.open-fork",
    count: rows.length,
    selected: rows.findIndex((row) => row.session.id === selectedId),
    onSelect: (index) => {
      const id = rows[index]?.session.id ?? selectedId;
      setSelected(id);
      document.querySelector(`[data-fork="${CSS.escape(id)}"]`)?.scrollIntoView({ block: "nearest" });
    },
    onOpen: () => {
      void navigate({ to: "/sessions/$sessionId", params: { sessionId: selectedId } });
    },
  });
  useActions({
    ...(rows.length > 1
      ? {
          "session.pick-fork": () => {
            picked.pick(selectedId);
          },
        }
      : {}),
    ...(picked.ids.length === 2
      ? {
          "session.compare-forks": () => {
            picked.compare();
          },
        }
      : {}),
  });
  if (isPending) {
    return <SkeletonRows />;
  }
  if (family === undefined) {
    return (
      <ErrorPanel className="m-4" title="The forks could not be loaded" error={error} onRetry={() => void refetch()} />
    );
  }
  if (rows.length <= 1 && !family.hasHiddenRoot) {
    return (
      <EmptyState title="No forks" command={`footplate fork ${session.id}`}>
        A fork starts with the history and the files of this session up to an event, and goes its own way. Start one
        from a turn of the conversation.
      </EmptyState>
    );
  }
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex min-h-12 flex-wrap items-center gap-3 border-b px-4 py-2">
        <p className="min-w-0 flex-1 text-muted">
          <span className="font-medium text-text">{rows.length === 1 ? "1 session" : `${rows.length} sessions`}</span>{" "}
          with a common history
          {family.isCut && ". There are more; the oldest are shown"}
        </p>
        <CompareButton
          count={picked.ids.length}
          onCompare={() => {
            picked.compare();
          }}
        />
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto py-2">
        {family.hasHiddenRoot && (
          <p className="px-4 pb-2 text-sm text-muted">
            The first session is a fork of one that was deleted or that you cannot see.
          </p>
        )}
        <ul aria-label="Forks">
          {rows.map((row) => (
            <li key={row.session.id}>
              <ForkRow
                row={row}
                isCurrent={row.session.id === session.id}
                isSelected={row.session.id === selectedId}
                readsChanges={rows.length <= MAX_CHANGES_READ}
                isPicked={picked.ids.includes(row.session.id)}
                onPick={() => {
                  picked.pick(row.session.id);
                }}
              />
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}
