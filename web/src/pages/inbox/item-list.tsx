// The items of the inbox, the oldest first.
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

import type { InboxItem } from "@/api/contract";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";
import { cn } from "@/design/classes";
import { describeItem, KINDS } from "./describe";

interface Props {
  items: readonly InboxItem[];
  selectedId: string | null;
  hasMore: boolean;
  onMore: () => void;
}

export function ItemList({ items, selectedId, hasMore, onMore }: Props) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.querySelector("a[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [selectedId]);
  return (
    <ul ref={list} aria-label="Items" className="flex flex-col">
      {items.map((item) => (
        <li key={item.id} className="border-b [contain-intrinsic-size:auto_57px] [content-visibility:auto]">
          <ItemRow item={item} isSelected={item.id === selectedId} />
        </li>
      ))}
      {hasMore && (
        <li>
          <button type="button" className="h-11 w-full text-accent hover:bg-hover" onClick={onMore}>
            Show more
          </button>
        </li>
      )}
    </ul>
  );
}

function ItemRow({ item, isSelected }: { item: InboxItem; isSelected: boolean }) {
  const { title, icon: Icon, color } = KINDS[item.kind];
  return (
    <Link
      to="/inbox"
      search={(before: object) => ({ ...before, item: item.id })}
      replace={isSelected}
      aria-current={isSelected ? "true" : undefined}
      className={cn(
        "flex min-h-14 items-start gap-3 border-l-2 border-l-transparent px-4 py-2 outline-offset-[-2px] hover:bg-hover",
        isSelected && "md:border-l-accent md:bg-selected",
      )}
    >
      <Icon aria-hidden className={cn("mt-0.5 size-4 shrink-0", color)} />
      <span className="min-w-0 flex-1">
        <span className="sr-only">{title}: </span>
        <SafeText
          limit={300}
          className={cn("block truncate", item.kind === "approval" ? "font-mono text-sm" : "font-medium")}
        >
          {describeItem(item)}
        </SafeText>
        <span className="flex gap-2 text-sm text-muted">
          <SafeText className="min-w-0 truncate">{item.session.title ?? "Untitled"}</SafeText>
          <span className="ml-auto flex shrink-0 gap-2">
            {item.assignee !== null && <SafeText className="max-w-24 truncate">{item.assignee.name}</SafeText>}
            <Time value={item.created_at} short />
          </span>
        </span>
      </span>
    </Link>
  );
}
