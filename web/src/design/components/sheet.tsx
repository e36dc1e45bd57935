// A panel at the side of the page, for details beside a list; the whole width on a phone.
import { Dialog as Base } from "@base-ui/react/dialog";
import { X } from "lucide-react";
import type { ReactNode } from "react";

import { cn } from "../classes";
import { Button } from "./button";
import { BACKDROP } from "./popup";

export const Sheet = Base.Root;
export const SheetTrigger = Base.Trigger;
export const SheetClose = Base.Close;

interface SheetContentProps {
  title: string;
  side?: "left" | "right";
  className?: string;
  children: ReactNode;
}

export function SheetContent({ title, side = "right", className, children }: SheetContentProps) {
  return (
    <Base.Portal>
      <Base.Backdrop className={BACKDROP} />
      <Base.Popup
        className={cn(
          "fixed inset-y-0 z-50 flex w-[28rem] max-w-full flex-col border-line bg-raised shadow-popup outline-none transition-transform",
          side === "right"
            ? "right-0 border-l data-ending-style:translate-x-full data-starting-style:translate-x-full"
            : "left-0 border-r data-ending-style:-translate-x-full data-starting-style:-translate-x-full",
          className,
        )}
      >
        <header className="flex h-12 shrink-0 items-center gap-2 border-b px-4">
          <Base.Title className="min-w-0 flex-1 truncate font-semibold">{title}</Base.Title>
          <Base.Close render={<Button variant="quiet" size="icon" aria-label="Close" />}>
            <X />
          </Base.Close>
        </header>
        <div className="min-h-0 flex-1 overflow-auto">{children}</div>
      </Base.Popup>
    </Base.Portal>
  );
}
