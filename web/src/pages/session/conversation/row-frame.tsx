// A row of the list: marked when it is selected, with a fork from it, and a link to it on hover.
import { GitFork, Link as LinkIcon } from "lucide-react";
import { memo } from "react";

import { cn } from "@/design/classes";
import { formatExactTime } from "@/design/format";

import type { LogItem } from "../log/items";
import { useConversation } from "./context";
import { ItemContent } from "./item-content";

const ACTION =
  "flex size-7 items-center justify-center rounded-sm text-muted hover:bg-hover hover:text-text [&_svg]:size-3.5";

export const RowFrame = memo(function RowFrame({ item, isSelected }: { item: LogItem; isSelected: boolean }) {
  const { copyLink, fork, mayOperate } = useConversation();
  const isWaiting = item.kind === "user" && item.isQueued;
  const isMessage = item.kind === "user" || item.kind === "agent";
  return (
    <div
      data-event={item.event.id}
      data-selected={isSelected || undefined}
      aria-current={isSelected ? "true" : undefined}
      className={cn(
        "group/row relative -mx-3 rounded-md px-3",
        isSelected && "bg-selected/60 shadow-[inset_2px_0_0_var(--accent)]",
      )}
    >
      <ItemContent item={item} />
      {!isWaiting && (
        <div
          className={cn(
            "group/bar absolute top-0.5 right-0 z-10 hidden rounded-md border bg-raised p-px shadow-sm group-focus-within/row:has-[:focus-visible]:flex group-hover/row:flex max-xl:-top-5 xl:right-auto xl:left-full xl:-ml-1 pointer-coarse:group-hover/row:hidden",
            // Beside a message, the fork is always visible, in the margin.
            isMessage &&
              "xl:flex xl:flex-row-reverse xl:not-group-hover/row:not-has-[:focus-visible]:border-transparent xl:not-group-hover/row:not-has-[:focus-visible]:bg-transparent xl:not-group-hover/row:not-has-[:focus-visible]:shadow-none",
          )}
        >
          <button
            type="button"
            className={cn(ACTION, isMessage && "xl:not-group-hover/row:not-group-has-[:focus-visible]/bar:opacity-0")}
            aria-label="Copy link to this event"
            title={`Copy link${item.event.processed_at === null ? "" : ` · ${formatExactTime(new Date(item.event.processed_at))}`}`}
            onClick={() => {
              copyLink(item.event);
            }}
          >
            <LinkIcon />
          </button>
          {mayOperate && (
            <button
              type="button"
              className={cn(ACTION, isMessage && "min-[1440px]:w-auto min-[1440px]:gap-1 min-[1440px]:px-1.5")}
              aria-label="Fork here"
              title={item.kind === "user" ? "Change this message in a fork (F)" : "Fork here (F)"}
              onClick={() => {
                fork(item);
              }}
            >
              <GitFork />
              {isMessage && <span className="hidden text-xs min-[1440px]:inline">Fork</span>}
            </button>
          )}
        </div>
      )}
    </div>
  );
});
