// A hint that appears on hover and on focus. Never the only place of something that is needed.
import { Tooltip as Base } from "@base-ui/react/tooltip";
import type { ReactElement, ReactNode } from "react";

import { Kbd } from "./kbd";
import { cn } from "../classes";
import { POPUP } from "./popup";

export function TooltipProvider({ children }: { children: ReactNode }) {
  return <Base.Provider delay={400}>{children}</Base.Provider>;
}

interface TooltipProps {
  content: ReactNode;
  shortcut?: string;
  side?: Base.Positioner.Props["side"];
  /** The element that it explains. */
  children: ReactElement;
}

export function Tooltip({ content, shortcut, side = "bottom", children }: TooltipProps) {
  return (
    <Base.Root>
      <Base.Trigger render={children} />
      <Base.Portal>
        <Base.Positioner side={side} sideOffset={6} className="z-50">
          <Base.Popup className={cn(POPUP, "flex max-w-80 items-center gap-2 px-2 py-1 text-sm")}>
            {content}
            {shortcut !== undefined && <Kbd>{shortcut}</Kbd>}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
