// One item of a conversation, whatever its kind.
import { memo } from "react";

import type { LogItem } from "../log/items";
import { AgentMessage, Thinking, UserMessage } from "./messages";
import { NoticeRow } from "./notice-row";
import { ToolRow } from "./tool-row";

export const ItemContent = memo(function ItemContent({ item }: { item: LogItem }) {
  switch (item.kind) {
    case "user":
      return <UserMessage item={item} />;
    case "agent":
      return <AgentMessage item={item} />;
    case "thinking":
      return <Thinking item={item} />;
    case "tool":
      return <ToolRow item={item} />;
    case "notice":
      return <NoticeRow notice={item.notice} />;
  }
});
