// A dialog in the middle of the page; at the bottom on a phone.
import { Dialog as Base } from "@base-ui/react/dialog";
import { X } from "lucide-react";
import type { ReactNode } from "react";

import { cn } from "../classes";
import { SafeText } from "../text/text";
import { Button } from "./button";
import { BACKDROP, POPUP } from "./popup";

export const Dialog = Base.Root;
export const DialogTrigger = Base.Trigger;
export const DialogClose = Base.Close;

interface DialogContentProps {
  title: string;
  description?: ReactNode;
  className?: string;
  children?: ReactNode;
  /** Buttons, the primary one last. */
  footer?: ReactNode;
}

export function DialogContent({ title, description, className, children, footer }: DialogContentProps) {
  return (
    <Base.Portal>
      <Base.Backdrop className={BACKDROP} />
      <Base.Popup
        className={cn(
          POPUP,
          "fixed top-1/2 left-1/2 flex max-h-[calc(100dvh-4rem)] w-[32rem] max-w-[calc(100vw-2rem)] -translate-x-1/2 -translate-y-1/2 flex-col",
          "max-md:top-auto max-md:bottom-0 max-md:left-0 max-md:w-full max-md:max-w-none max-md:translate-x-0 max-md:translate-y-0 max-md:rounded-b-none max-md:pb-[env(safe-area-inset-bottom)]",
          className,
        )}
      >
        <header className="flex items-start gap-2 px-4 pt-4 pb-2">
          <div className="min-w-0 flex-1">
            <Base.Title className="text-lg font-semibold break-words">
              <SafeText>{title}</SafeText>
            </Base.Title>
            {description !== undefined && <Base.Description className="text-muted">{description}</Base.Description>}
          </div>
          <Base.Close render={<Button variant="quiet" size="icon" aria-label="Close" className="-mt-1 -mr-1" />}>
            <X />
          </Base.Close>
        </header>
        {children !== undefined && <div className="min-h-0 flex-1 overflow-auto px-4 py-2">{children}</div>}
        {footer !== undefined && <footer className="flex justify-end gap-2 px-4 pt-2 pb-4">{footer}</footer>}
      </Base.Popup>
    </Base.Portal>
  );
}
