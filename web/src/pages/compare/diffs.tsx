// The changes of two attempts, file by file and side by side.
import { Suspense, useState } from "react";

import { useActions } from "@/actions/use-actions";
import { cn } from "@/design/classes";
import { Badge } from "@/design/components/badge";
import { EmptyState } from "@/design/components/empty-state";
import { Select } from "@/design/components/select";
import { SkeletonRows } from "@/design/components/skeleton";
import { lazyPart } from "@/frame/lazy-part";
import { buildItem } from "../session/changes/diff-items";
import { FileHeader } from "../session/changes/file-header";
import { Counts, PathText } from "../session/changes/file-marks";
import type { FileChange } from "../session/changes/parse-file";
import { type FilePair, pairFiles } from "./files-in-step";
import type { Attempt } from "./use-attempt";

const DiffView = lazyPart("The diff", () => import("../session/changes/diff-view"));

interface DiffsProps {
  attempts: readonly [Attempt, Attempt];
  path: string | undefined;
  onPath: (path: string) => void;
}

export function Diffs({ attempts, path, onPath }: DiffsProps) {
  const [left, right] = attempts;
  const pairs = pairFiles(left.files, right.files);
  const readable = pairs.filter((pair) => (pair.right ?? pair.left)?.isBinary !== true);
  const selected =
    pairs.find((pair) => pair.path === path) ??
    // The first file in which they differ says most; a binary one shows nothing.
    readable.find((pair) => pair.left !== null && pair.right !== null && !pair.isSame) ??
    readable.find((pair) => !pair.isSame) ??
    readable[0] ??
    pairs[0];
  const isComplete = left.isComplete && right.isComplete;
  function move(step: 1 | -1): void {
    const index = pairs.findIndex((pair) => pair.path === selected?.path);
    const next = pairs[Math.min(Math.max(index + step, 0), pairs.length - 1)];
    if (next !== undefined) {
      onPath(next.path);
    }
  }
  useActions(
    pairs.length > 0
      ? {
          "compare.next-file": () => {
            move(1);
          },
          "compare.previous-file": () => {
            move(-1);
          },
        }
      : {},
  );
  if (selected === undefined) {
    return isComplete ? (
      <EmptyState title="Neither changed a file">Compare what they answered above.</EmptyState>
    ) : (
      <SkeletonRows />
    );
  }
  return (
    <section aria-label="Changes" className="flex min-h-[32rem] flex-1 flex-col" data-complete={isComplete}>
      <div className="border-b p-2 md:hidden">
        <Select
          label="File"
          className="w-full"
          options={pairs.map((pair) => ({ value: pair.path, label: pair.path }))}
          value={selected.path}
          onChange={(next) => {
            if (next !== null) {
              onPath(next);
            }
          }}
        />
      </div>
      <div className="flex min-h-0 flex-1">
        <ul aria-label="Changed files" className="w-72 shrink-0 overflow-y-auto border-r p-1 max-lg:w-52 max-md:hidden">
          {pairs.map((pair) => (
            <PairRow
              key={pair.path}
              pair={pair}
              isSelected={pair.path === selected.path}
              onSelect={() => {
                onPath(pair.path);
              }}
            />
          ))}
        </ul>
        <div className="grid min-h-0 min-w-0 flex-1 grid-cols-2 max-md:grid-cols-1 max-md:grid-rows-2">
          {([selected.left, selected.right] as const).map((file, index) => (
            <div
              key={index}
              data-testid={index === 0 ? "left" : "right"}
              className={cn(
                "flex min-h-0 min-w-0 flex-col",
                index === 1 && "border-l max-md:border-t max-md:border-l-0",
              )}
            >
              {file === null ? (
                <p className="p-4 text-muted">
                  {attempts[index]?.isComplete === true
                    ? `Attempt ${index === 0 ? "A" : "B"} does not change this file.`
                    : "Loading …"}
                </p>
              ) : (
                <FileDiff key={file.id} file={file} />
              )}
            </div>
          ))}
        </div>
      </div>
    </section>
  );
}

function FileDiff({ file }: { file: FileChange }) {
  const [isCollapsed, setCollapsed] = useState(false);
  return (
    <Suspense fallback={<SkeletonRows />}>
      <DiffView
        items={[buildItem(file, [], null, isCollapsed)]}
        files={new Map([[file.id, file]])}
        layout="unified"
        selection={null}
        onSelect={ignore}
        onActive={ignore}
        reveal={null}
        renderHeader={() => (
          <FileHeader
            file={file}
            isCollapsed={isCollapsed}
            commentCount={0}
            onToggle={() => {
              setCollapsed(!isCollapsed);
            }}
          />
        )}
        renderNote={() => null}
      />
    </Suspense>
  );
}

function ignore(): void {
  // Lines are not selected here.
}

function PairRow({ pair, isSelected, onSelect }: { pair: FilePair; isSelected: boolean; onSelect: () => void }) {
  return (
    <li>
      <button
        type="button"
        aria-current={isSelected}
        title={pair.path}
        className="flex w-full flex-col gap-0.5 rounded-md px-2 py-1 text-left outline-offset-[-2px] hover:bg-hover aria-[current=true]:bg-selected"
        onClick={onSelect}
      >
        <PathText path={pair.path} className="max-w-full" />
        <span className="flex items-center gap-3 text-xs text-muted">
          {pair.isSame ? (
            <Badge>same in both</Badge>
          ) : (
            (["left", "right"] as const).map((side) => {
              const file = pair[side];
              return (
                <span key={side} className="flex items-center gap-1">
                  {side === "left" ? "A" : "B"}
                  {file === null ? "–" : <Counts added={file.added} deleted={file.deleted} isBinary={file.isBinary} />}
                </span>
              );
            })
          )}
        </span>
      </button>
    </li>
  );
}
