// Short messages about what happened, with an optional button such as "Undo".
import { Toast as Base } from "@base-ui/react/toast";
import { X } from "lucide-react";
import type { ReactNode } from "react";

import { cn } from "../classes";
import { SafeText } from "../text/text";
import { Button } from "./button";
import { POPUP } from "./popup";

const manager = Base.createToastManager();

interface ToastOptions {
  title: string;
  description?: string;
  tone?: "neutral" | "failed";
  /** In milliseconds. A toast with an action stays five seconds by default. */
  timeout?: number;
  action?: { label: string; onClick: () => void };
}

/** Shows a message from anywhere. Returns its id for `closeToast`. */
export function showToast({ title, description, tone = "neutral", timeout = 5_000, action }: ToastOptions): string {
  const id: string = manager.add({
    title,
    description,
    type: tone,
    timeout,
    priority: tone === "failed" ? "high" : "low",
    ...(action === undefined
      ? {}
      : {
          actionProps: {
            children: action.label,
            onClick: () => {
              manager.close(id);
              action.onClick();
            },
          },
        }),
  });
  return id;
}

export function closeToast(id: string): void {
  manager.close(id);
}

/** Above the fields and buttons at the bottom of a page, which a message must not cover. */
export function Toaster({ children }: { children: ReactNode }) {
  return (
    <Base.Provider toastManager={manager} limit={3}>
      {children}
      <Base.Portal>
        <Base.Viewport className="fixed right-4 bottom-28 z-[60] flex w-96 max-w-[calc(100vw-2rem)] flex-col gap-2 max-md:right-1/2 max-md:bottom-40 max-md:translate-x-1/2">
          <ToastList />
        </Base.Viewport>
      </Base.Portal>
    </Base.Provider>
  );
}

/** Names of members and messages of the server are in it. */
function asSafeText(text: ReactNode): ReactNode {
  return typeof text === "string" ? <SafeText>{text}</SafeText> : text;
}

function ToastList() {
  const { toasts } = Base.useToastManager();
  return toasts.map((toast) => (
    <Base.Root
      key={toast.id}
      toast={toast}
      data-toast
      className={cn(POPUP, "border-l-4 border-l-line-strong", toast.type === "failed" && "border-l-failed")}
    >
      <Base.Content className="flex items-center gap-2 p-3">
        <div className="min-w-0 flex-1">
          <Base.Title className="font-medium break-words">{asSafeText(toast.title)}</Base.Title>
          {toast.description !== undefined && (
            <Base.Description className="break-words text-muted">{asSafeText(toast.description)}</Base.Description>
          )}
        </div>
        {toast.actionProps !== undefined && <Base.Action render={<Button size="sm" />} />}
        <Base.Close render={<Button variant="quiet" size="icon" aria-label="Close the message" />}>
          <X />
        </Base.Close>
      </Base.Content>
    </Base.Root>
  ));
}
