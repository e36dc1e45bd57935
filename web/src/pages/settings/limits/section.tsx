// Limits: what the organisation and its members may use at the same time, how much they use, and who has set it.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { displayShortcut } from "@/actions/shortcuts";
import { useActions } from "@/actions/use-actions";
import type { Principal } from "@/api/contract";
import { keys } from "@/api/keys";
import { meQuery } from "@/api/queries/me";
import { type Limit, limitsQuery, setLimit } from "@/api/queries/people";
import { cn } from "@/design/classes";
import { Button } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { MenuItem } from "@/design/components/menu";
import { SkeletonRows } from "@/design/components/skeleton";
import { showToast } from "@/design/components/toast";
import { SafeText } from "@/design/text/text";
import { useListKeys } from "@/frame/use-list-keys";
import { type Confirmation, ConfirmDialog } from "@/pages/session/confirm-dialog";

import { findAccessProblem } from "../people/access";
import { ColumnTitles, EntryRow, SectionBar } from "../shared/entry-list";
import { EntryMenu, EntryName } from "../shared/entry-menu";
import { useSection } from "../shared/use-section";
import { useChange } from "../people/use-change";
import { LimitDialog } from "./limit-dialog";
import {
  describeRemoval,
  describeScope,
  describeSetter,
  formatAmount,
  limitId,
  LIMIT_NAMES,
  LIMITS,
  usedShare,
} from "./model";

const COLUMNS = ["For", "Used", "At most", "Set by", ""];
const GRID = "md:grid-cols-[minmax(0,1fr)_8rem_9rem_8rem_2rem]";
const NEARLY_FULL = 0.8;
const TEXT = "Limits hold for everyone together, at the same time.";

export default function LimitsSection() {
  const { data: me } = useQuery(meQuery);
  const list = useQuery(limitsQuery);
  if (me === undefined || list.isPending) {
    return <SkeletonRows />;
  }
  return list.data === undefined ? (
    <ErrorPanel
      className="m-4"
      title="The limits could not be loaded"
      error={list.error}
      onRetry={() => void list.refetch()}
    />
  ) : (
    <Limits me={me} limits={list.data} />
  );
}

function Limits({ me, limits }: { me: Principal; limits: readonly Limit[] }) {
  const queries = useQueryClient();
  const address = useSection("limits");
  const change = useChange(keys.limits);
  const problem = findAccessProblem(me);
  const canChange = problem === null;
  /** Null: none is selected. Undefined: the dialog is closed. */
  const [edited, setEdited] = useState<Limit | null | undefined>(undefined);
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const index = limits.findIndex((limit) => limitId(limit) === address.search.selected);
  const selected = limits[index];

  function set(): void {
    setEdited(selected ?? null);
  }
  function remove(limit: Limit): void {
    setConfirmation({
      title: `Remove the limit “${LIMITS[limit.name].title}” of ${describeScope(limit)}?`,
      text: describeRemoval(limit, limits),
      button: "Remove",
      run: () =>
        change(
          () => setLimit({ name: limit.name, scope: limit.scope, member_id: limit.member_id, value: null }),
          "The limit was not removed",
          () => showToast({ title: "Limit removed", description: LIMITS[limit.name].title }),
        ),
    });
  }
  useListKeys({
    next: "settings.work-next",
    previous: "settings.work-previous",
    count: limits.length,
    selected: index,
    onSelect: (next) => {
      const limit = limits[next];
      address.select(limit === undefined ? undefined : limitId(limit));
    },
  });
  useActions({
    ...(canChange ? { "settings.set-limit": set } : {}),
    ...(canChange && selected !== undefined && selected.own_value !== null
      ? {
          "settings.unset-limit": () => {
            remove(selected);
          },
        }
      : {}),
  });
  return (
    <>
      <SectionBar text={canChange ? TEXT : `${TEXT} ${problem}`}>
        {canChange && (
          <Button variant="primary" className="max-md:ml-auto max-md:h-11" onClick={set}>
            Set a limit
          </Button>
        )}
      </SectionBar>
      <ColumnTitles titles={COLUMNS} grid={GRID} />
      <div className="min-h-0 flex-1 overflow-y-auto">
        {LIMIT_NAMES.map((name) => (
          <section key={name} aria-label={LIMITS[name].title}>
            <h2 className="flex flex-wrap gap-x-2 border-b bg-surface px-4 py-1.5">
              <span className="font-medium">{LIMITS[name].title}</span>
              <span className="text-muted">
                {LIMITS[name].counts}. Beyond it, {LIMITS[name].beyond}.
              </span>
            </h2>
            <ul>
              {limits
                .filter((limit) => limit.name === name)
                .map((limit) => (
                  <EntryRow key={limitId(limit)} isSelected={limit === selected} grid={GRID}>
                    <LimitCells
                      limit={limit}
                      canChange={canChange}
                      onSelect={() => {
                        address.select(limitId(limit));
                      }}
                      onSet={() => {
                        setEdited(limit);
                      }}
                      onRemove={() => {
                        remove(limit);
                      }}
                    />
                  </EntryRow>
                ))}
            </ul>
          </section>
        ))}
      </div>
      {edited !== undefined && (
        <LimitDialog
          limit={edited}
          limits={limits}
          onSaved={(limit) => {
            setEdited(undefined);
            void queries.invalidateQueries({ queryKey: keys.limits });
            showToast({
              title: "Limit set",
              description: `${LIMITS[limit.name].title}: ${limit.value === null ? "unlimited" : formatAmount(limit.name, limit.value)}`,
            });
          }}
          onClose={() => {
            setEdited(undefined);
          }}
        />
      )}
      {confirmation !== null && (
        <ConfirmDialog
          confirmation={confirmation}
          onClose={() => {
            setConfirmation(null);
          }}
        />
      )}
    </>
  );
}

interface CellsProps {
  limit: Limit;
  canChange: boolean;
  onSelect: () => void;
  onSet: () => void;
  onRemove: () => void;
}

function LimitCells({ limit, canChange, onSelect, onSet, onRemove }: CellsProps) {
  const share = usedShare(limit);
  const scope = describeScope(limit);
  return (
    <>
      <EntryName onSelect={onSelect}>
        <SafeText>{scope}</SafeText>
      </EntryName>
      <span>
        {limit.used === null ? (
          <span className="text-muted max-md:hidden">–</span>
        ) : (
          <>
            {formatAmount(limit.name, limit.used)}
            <span className="md:hidden"> used of</span>
          </>
        )}
      </span>
      <span className="flex items-center gap-2">
        {limit.value === null ? (
          <span className="text-muted">no limit</span>
        ) : (
          <>
            <span className="min-w-12">{formatAmount(limit.name, limit.value)}</span>
            {share !== null && <UsedBar share={share} />}
          </>
        )}
      </span>
      <span className="text-muted max-md:empty:hidden">{describeSetter(limit)}</span>
      {canChange && (
        <EntryMenu name={`${LIMITS[limit.name].title} of ${scope}`} onOpen={onSelect}>
          <MenuItem shortcut={displayShortcut("e").join(" ")} onClick={onSet}>
            Set a limit…
          </MenuItem>
          {limit.own_value !== null && (
            <MenuItem isDangerous shortcut={displayShortcut("shift+d").join(" ")} onClick={onRemove}>
              Remove the limit…
            </MenuItem>
          )}
        </EntryMenu>
      )}
    </>
  );
}

/** The numbers beside it say the same. */
function UsedBar({ share }: { share: number }) {
  return (
    <span aria-hidden className="h-1.5 w-16 overflow-hidden rounded-full bg-hover">
      <span
        className={cn(
          "block h-full rounded-full",
          share >= 1 ? "bg-failed" : share >= NEARLY_FULL ? "bg-waiting" : "bg-accent",
        )}
        style={{ width: `${Math.round(share * 100)}%` }}
      />
    </span>
  );
}
