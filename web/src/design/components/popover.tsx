// Content that opens beside its trigger.
import { Popover as Base } from "@base-ui/react/popover";
import type { ReactNode } from "react";

import { cn } from "../classes";
import { POPUP } from "./popup";

export const Popover = Base.Root;
export const PopoverTrigger = Base.Trigger;
export const PopoverClose = Base.Close;

interface PopoverContentProps extends Pick<Base.Positioner.Props, "side" | "align"> {
  title?: string;
  className?: string;
  children: ReactNode;
}

export function PopoverContent({ title, className, children, side = "bottom", align = "start" }: PopoverContentProps) {
  return (
    <Base.Portal>
      <Base.Positioner side={side} align={align} sideOffset={4} className="z-50">
        <Base.Popup className={cn(POPUP, "max-w-[calc(100vw-1rem)] min-w-48 p-2", className)}>
          {title !== undefined && <Base.Title className="px-2 py-1 font-semibold">{title}</Base.Title>}
          {children}
        </Base.Popup>
      </Base.Positioner>
    </Base.Portal>
  );
}
