// Above the diff: which changes are shown, how, and what can be done with all of them.
import { Columns2, Files, GitCompare, GitMerge, MoreHorizontal, Rows2 } from "lucide-react";

import { Button } from "@/design/components/button";
import { copyText } from "@/design/components/copy";
import { Menu, MenuContent, MenuItem, MenuSeparator, MenuTrigger } from "@/design/components/menu";
import { Select, type SelectOption } from "@/design/components/select";
import { showToast } from "@/design/components/toast";
import { formatDuration } from "@/design/format";
import { CHANGE_STATES, type DiffLayout } from "../search";
import { download } from "./download";
import { Counts } from "./file-marks";
import { type ChangeState, type DiffRange, formatRange, type Turn } from "./ranges";
import type { Changes } from "./use-changes";

const STATE_TITLES: Record<ChangeState, string> = {
  committed: "Committed",
  staged: "Staged",
  unstaged: "Unstaged",
  untracked: "Untracked",
};

interface ToolbarProps {
  sessionId: string;
  changes: Changes;
  layout: DiffLayout;
  viewedCount: number;
  onRange: (range: DiffRange) => void;
  onProject: (id: string | undefined) => void;
  onState: (state: ChangeState | undefined) => void;
  onLayout: (layout: DiffLayout) => void;
  onShowFiles: () => void;
  onMerge: () => void;
  onDownload: () => void;
  onCompare: () => void;
}

export function Toolbar(props: ToolbarProps) {
  const { changes, layout, viewedCount } = props;
  const { tree, trees, states, state, listed } = changes;
  return (
    <div className="flex flex-wrap items-center gap-x-2 gap-y-1 border-b px-4 py-1.5 max-md:px-2">
      <RangeSelects changes={changes} onRange={props.onRange} />
      {trees.length > 1 && (
        <Select
          label="Project"
          className="max-w-48"
          options={trees.map((one) => ({
            value: one.project_id ?? "",
            label: `${one.name} (${one.files.length})`,
          }))}
          value={tree?.project_id ?? ""}
          onChange={(value) => {
            props.onProject(value === null || value === "" ? undefined : value);
          }}
        />
      )}
      {states !== null && (tree?.files.length ?? 0) > 0 && (
        <Select
          label="State in git"
          options={CHANGE_STATES.map((value) => ({ value, label: `${STATE_TITLES[value]} (${states[value].count})` }))}
          value={state ?? null}
          clearLabel="All states in git"
          onChange={(value) => {
            props.onState(value ?? undefined);
          }}
        />
      )}
      {tree !== undefined && listed.length > 0 && (
        <span className="flex items-center gap-2 text-sm text-muted max-lg:hidden">
          {listed.length === 1 ? "1 file" : `${listed.length.toLocaleString()} files`}
          <Counts {...countLines(changes)} />
          <span className="max-xl:hidden">
            {viewedCount} of {listed.length} viewed
          </span>
        </span>
      )}
      <div className="ml-auto flex items-center gap-1">
        <Button
          variant="quiet"
          className="max-md:size-11 max-md:px-0 lg:hidden"
          aria-label={`${listed.length} changed files`}
          onClick={props.onShowFiles}
        >
          <Files />
          <span className="max-md:hidden">{listed.length}</span>
        </Button>
        <LayoutButton layout={layout} onLayout={props.onLayout} />
        <Button className="max-md:h-11" onClick={props.onMerge}>
          <GitMerge />
          Merge
        </Button>
        <MoreMenu {...props} />
      </div>
    </div>
  );
}

function LayoutButton({ layout, onLayout }: Pick<ToolbarProps, "layout" | "onLayout">) {
  const isSplit = layout === "split";
  return (
    <Button
      variant="quiet"
      size="icon"
      className="max-md:size-11"
      aria-label={isSplit ? "Show unified" : "Show side by side"}
      title={isSplit ? "Show unified (U)" : "Show side by side (U)"}
      aria-keyshortcuts="u"
      onClick={() => {
        onLayout(isSplit ? "unified" : "split");
      }}
    >
      {isSplit ? <Rows2 /> : <Columns2 />}
    </Button>
  );
}

function MoreMenu({ sessionId, changes, onDownload, onCompare }: ToolbarProps) {
  const projectId = changes.tree?.project_id ?? null;
  const command = `footplate apply ${sessionId}`;
  return (
    <Menu>
      <MenuTrigger
        render={<Button variant="quiet" size="icon" aria-label="More" title="More" className="max-md:size-11" />}
      >
        <MoreHorizontal />
      </MenuTrigger>
      <MenuContent align="end">
        <MenuItem disabled={changes.downloadUrl === null} onClick={onDownload}>
          Download as a patch
        </MenuItem>
        {projectId !== null && (
          <MenuItem
            onClick={() => {
              download(
                `/v1/sessions/${encodeURIComponent(sessionId)}/bundle?project_id=${encodeURIComponent(projectId)}`,
                `${sessionId}.bundle`,
              );
            }}
          >
            Download as a git bundle
          </MenuItem>
        )}
        <MenuItem
          onClick={() => {
            void copyText(command).then((isCopied) => {
              if (isCopied) {
                showToast({ title: "Command copied", description: command });
              }
            });
          }}
        >
          Copy the command that applies them
        </MenuItem>
        <MenuSeparator />
        <MenuItem onClick={onCompare}>
          <GitCompare />
          Compare with another attempt
        </MenuItem>
      </MenuContent>
    </Menu>
  );
}

function RangeSelects({ changes, onRange }: Pick<ToolbarProps, "changes" | "onRange">) {
  const { range, turns } = changes;
  const options: SelectOption<string>[] = turns
    .map((turn, index) => ({ value: turn.id, label: `Turn ${index + 1}${describeTurn(turn)}` }))
    .reverse();
  const from = range.kind === "all" ? null : range.kind === "turn" ? range.turnId : range.fromId;
  const first = turns.findIndex((turn) => turn.id === from);
  return (
    <>
      <Select
        label="Changes of"
        className="max-w-60"
        options={options}
        value={from}
        clearLabel="Changes of all turns"
        onChange={(turnId) => {
          onRange(turnId === null ? { kind: "all" } : { kind: "turn", turnId });
        }}
      />
      {from !== null && first !== -1 && first < turns.length - 1 && (
        <Select
          label="Up to"
          className="max-w-48"
          options={turns
            .slice(first + 1)
            .map((turn, index) => ({ value: turn.id, label: `to turn ${first + index + 2}` }))}
          value={range.kind === "turns" ? range.toId : null}
          clearLabel="only this turn"
          onChange={(toId) => {
            onRange(toId === null ? { kind: "turn", turnId: from } : { kind: "turns", fromId: from, toId });
          }}
        />
      )}
    </>
  );
}

function describeTurn(turn: Turn): string {
  if (turn.ended_at === null) {
    return " · running";
  }
  const seconds = turn.started_at === null ? 0 : (Date.parse(turn.ended_at) - Date.parse(turn.started_at)) / 1000;
  return ` · ${turn.result.success ? "" : "failed, "}${formatDuration(seconds)}`;
}

export function rangeIndex(range: DiffRange, turns: readonly Turn[]): number {
  const id = formatRange(range)?.split("..").at(-1);
  return turns.findIndex((turn) => turn.id === id);
}

function countLines({ listed }: Changes): { added: number; deleted: number } {
  let added = 0;
  let deleted = 0;
  for (const file of listed) {
    added += file.added ?? 0;
    deleted += file.deleted ?? 0;
  }
  return { added, deleted };
}
