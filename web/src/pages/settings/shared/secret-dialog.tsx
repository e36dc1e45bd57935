// Shows a secret, once. It is only in the memory of this page, until the dialog closes.
import { TriangleAlert } from "lucide-react";

import { Button } from "@/design/components/button";
import { CopyButton } from "@/design/components/copy";
import { Dialog, DialogContent } from "@/design/components/dialog";

interface Props {
  title: string;
  secret: string;
  /** Why it cannot be shown again. */
  warning: string;
  /** What it is for, or until when the old one is valid. */
  note?: string | undefined;
  onClose: () => void;
}

export function SecretDialog({ title, secret, warning, note, onClose }: Props) {
  return (
    <Dialog
      open
      disablePointerDismissal
      onOpenChange={(isOpen, { reason }) => {
        // A key pressed by mistake must not lose the secret.
        if (!isOpen && reason !== "escape-key") {
          onClose();
        }
      }}
    >
      <DialogContent
        title={title}
        footer={
          <Button variant="primary" className="max-md:h-11 max-md:flex-1" onClick={onClose}>
            I have copied it
          </Button>
        }
      >
        <div className="flex flex-col gap-3">
          <p className="flex gap-2 rounded-md bg-waiting-soft px-3 py-2 text-waiting">
            <TriangleAlert aria-hidden className="mt-0.5 size-4 shrink-0" />
            <span>{warning}</span>
          </p>
          <div className="flex items-center gap-2 rounded-md bg-code py-2 pr-2 pl-3">
            <div role="group" aria-label="Secret" className="min-w-0 flex-1">
              <code className="font-mono text-sm break-all select-all">{secret}</code>
            </div>
            <CopyButton text={secret} label="the secret" className="max-md:min-h-11 max-md:min-w-11" />
          </div>
          {note !== undefined && <p className="text-sm text-muted">{note}</p>}
        </div>
      </DialogContent>
    </Dialog>
  );
}
