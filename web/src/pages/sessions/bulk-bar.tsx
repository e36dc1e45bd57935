// What can be done with the selected sessions, the progress of it, and what was not possible.
import { Archive, CircleStop, Columns2, Pause, Pin, PinOff, Play, Trash2, X } from "lucide-react";
import type { ComponentType } from "react";

import { ApiError } from "@/api/errors";
import { Button } from "@/design/components/button";
import { Dialog, DialogClose, DialogContent } from "@/design/components/dialog";
import { MessageText, SafeText } from "@/design/text/text";

import { BULK_WORDS, type BulkKind, type BulkRun, countSessions } from "./bulk";
import type { SessionRow } from "./rows";

const CHANGES: readonly { kind: BulkKind; icon: ComponentType; isDangerous?: boolean }[] = [
  { kind: "interrupt", icon: CircleStop },
  { kind: "pause", icon: Pause },
  { kind: "play", icon: Play },
  { kind: "pin", icon: Pin },
  { kind: "unpin", icon: PinOff },
  { kind: "archive", icon: Archive },
  { kind: "delete", icon: Trash2, isDangerous: true },
];
export const NOT_PERMITTED = "Your role does not permit to change sessions. You can pin them for yourself.";

interface BarProps {
  rows: readonly SessionRow[];
  run: BulkRun | null;
  canOperate: boolean;
  onRun: (kind: BulkKind) => void;
  onCompare: () => void;
  onClear: () => void;
}

export function BulkBar({ rows, run, canOperate, onRun, onCompare, onClear }: BarProps) {
  const isBusy = run !== null && !run.isFinished;
  if (rows.length === 0 && !isBusy) {
    return null;
  }
  return (
    <div
      role="toolbar"
      aria-label="Selected sessions"
      className="flex shrink-0 flex-wrap items-center gap-1 border-t bg-surface px-4 py-1.5"
    >
      <p role="status" className="mr-2 font-medium max-md:flex-1">
        {isBusy
          ? `${BULK_WORDS[run.kind].doing} ${run.done} of ${countSessions(run.total)}`
          : `${rows.length.toLocaleString()} selected`}
      </p>
      {isBusy && (
        <progress aria-label="Progress" max={run.total} value={run.done} className="h-1.5 w-40 accent-accent" />
      )}
      {!isBusy && (
        <Button
          variant="quiet"
          className="max-md:order-last max-md:size-11 max-md:px-0"
          disabled={rows.length !== 2}
          title={rows.length === 2 ? "Compare" : "Select two sessions to compare them"}
          aria-label="Compare"
          onClick={onCompare}
        >
          <Columns2 aria-hidden />
          <span className="max-lg:hidden">Compare</span>
        </Button>
      )}
      {!isBusy &&
        CHANGES.map(({ kind, icon: Icon, isDangerous = false }) => {
          const isAllowed = canOperate || kind === "pin" || kind === "unpin";
          return (
            <Button
              key={kind}
              variant={isDangerous ? "danger" : "quiet"}
              className="max-md:order-last max-md:size-11 max-md:px-0"
              disabled={!isAllowed}
              title={isAllowed ? BULK_WORDS[kind].verb : NOT_PERMITTED}
              aria-label={BULK_WORDS[kind].verb}
              onClick={() => {
                onRun(kind);
              }}
            >
              <Icon aria-hidden />
              <span className="max-lg:hidden">{BULK_WORDS[kind].verb}</span>
            </Button>
          );
        })}
      {!isBusy && (
        <Button
          variant="quiet"
          size="icon"
          aria-label="Clear the selection"
          className="ml-auto max-md:size-11"
          onClick={onClear}
        >
          <X />
        </Button>
      )}
      {!isBusy && <span className="w-full md:hidden" />}
      {!canOperate && !isBusy && <p className="w-full text-sm text-muted">{NOT_PERMITTED}</p>}
    </div>
  );
}

const SHOWN = 5;

interface DeleteProps {
  rows: readonly SessionRow[] | null;
  onCancel: () => void;
  onConfirm: (rows: readonly SessionRow[]) => void;
}

export function DeleteDialog({ rows, onCancel, onConfirm }: DeleteProps) {
  const shown = rows ?? [];
  const working = shown.filter((row) => row.state === "running" || row.state === "queued" || row.state === "needs_you");
  return (
    <Dialog
      open={rows !== null}
      onOpenChange={(isOpen) => {
        if (!isOpen) {
          onCancel();
        }
      }}
    >
      <DialogContent
        title={`Delete ${countSessions(shown.length)}?`}
        description="This cannot be undone."
        footer={
          <>
            <DialogClose render={<Button />}>Keep them</DialogClose>
            <Button
              variant="danger"
              onClick={() => {
                onConfirm(shown);
              }}
            >
              Delete {countSessions(shown.length)}
            </Button>
          </>
        }
      >
        <p>
          The conversation, the files and every change that was not merged, pushed or exported are lost. Usage and the
          audit trail stay.
        </p>
        {working.length > 0 && (
          <p className="mt-2 text-waiting">
            {working.length === 1 ? "1 of them has" : `${working.length} of them have`} work that has not ended. It
            stops.
          </p>
        )}
        <ul className="mt-2 list-disc pl-5">
          {shown.slice(0, SHOWN).map((row) => (
            <li key={row.id} className="truncate">
              <SafeText>{row.title}</SafeText>
            </li>
          ))}
          {shown.length > SHOWN && <li className="text-muted">and {shown.length - SHOWN} more</li>}
        </ul>
      </DialogContent>
    </Dialog>
  );
}

interface FailuresProps {
  run: BulkRun | null;
  onClose: () => void;
  onRetry: (run: BulkRun) => void;
}

export function FailuresDialog({ run, onClose, onRetry }: FailuresProps) {
  const failures = run?.isFinished === true ? run.failures : [];
  const words = run === null ? null : BULK_WORDS[run.kind];
  return (
    <Dialog
      open={failures.length > 0}
      onOpenChange={(isOpen) => {
        if (!isOpen) {
          onClose();
        }
      }}
    >
      <DialogContent
        title={`${countSessions(failures.length)} not ${words?.done ?? ""}`}
        description={
          run === null || run.total === failures.length
            ? undefined
            : `${countSessions(run.total - failures.length)} ${words?.done ?? ""}.`
        }
        footer={
          <>
            <DialogClose render={<Button />}>Close</DialogClose>
            <Button
              variant="primary"
              onClick={() => {
                if (run !== null) {
                  onRetry(run);
                }
              }}
            >
              Try again
            </Button>
          </>
        }
      >
        <ul className="flex flex-col gap-2">
          {failures.map(({ row, error }) => (
            <li key={row.id}>
              <SafeText className="block truncate font-medium">{row.title}</SafeText>
              <span className="block break-words text-muted">
                <MessageText>{error instanceof Error ? error.message : String(error)}</MessageText>{" "}
                {error instanceof ApiError && error.help !== null && <MessageText>{error.help}</MessageText>}
              </span>
            </li>
          ))}
        </ul>
      </DialogContent>
    </Dialog>
  );
}
