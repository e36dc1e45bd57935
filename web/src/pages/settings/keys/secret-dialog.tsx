// Shows the secret of a key, once. It is only in the memory of this page, until the dialog closes.
import { TriangleAlert } from "lucide-react";

import type { NewApiKey } from "@/api/queries/people";
import { Button } from "@/design/components/button";
import { CopyButton } from "@/design/components/copy";
import { Dialog, DialogContent } from "@/design/components/dialog";

interface Props {
  created: NewApiKey;
  isReplaced: boolean;
  onClose: () => void;
}

export function SecretDialog({ created, isReplaced, onClose }: Props) {
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
        title={isReplaced ? `New secret of “${created.name}”` : `API key “${created.name}” created`}
        footer={
          <Button variant="primary" className="max-md:h-11 max-md:flex-1" onClick={onClose}>
            Done
          </Button>
        }
      >
        <div className="flex flex-col gap-3">
          <p className="flex gap-2 rounded-md bg-waiting-soft px-3 py-2 text-waiting">
            <TriangleAlert aria-hidden className="mt-0.5 size-4 shrink-0" />
            <span>
              Copy the secret now. The server stores only its hash, so nothing can show it again after you close this.
            </span>
          </p>
          <div className="flex items-center gap-2 rounded-md bg-code py-2 pr-2 pl-3">
            <div role="group" aria-label="Secret" className="min-w-0 flex-1">
              <code className="font-mono text-sm break-all select-all">{created.secret}</code>
            </div>
            <CopyButton text={created.secret} label="the secret" className="max-md:min-h-11 max-md:min-w-11" />
          </div>
          <p className="text-sm text-muted">
            {isReplaced
              ? "The old secret stops working within 5 seconds."
              : "Programs send it as x-api-key. The command line reads it from FOOTPLATE_API_KEY."}
          </p>
        </div>
      </DialogContent>
    </Dialog>
  );
}
