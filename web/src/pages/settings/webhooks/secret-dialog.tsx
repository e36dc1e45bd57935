// The secret of an endpoint, once.
import type { NewWebhookEndpoint } from "@/api/queries/webhooks";
import { Button } from "@/design/components/button";
import { CopyButton } from "@/design/components/copy";
import { Dialog, DialogContent } from "@/design/components/dialog";
import { formatExactTime } from "@/design/format";

interface Props {
  endpoint: NewWebhookEndpoint;
  onClose: () => void;
}

export function SecretDialog({ endpoint, onClose }: Props) {
  const { secret, old_secret_expires_at: expiry } = endpoint;
  return (
    <Dialog
      open
      disablePointerDismissal
      onOpenChange={(isOpen) => {
        if (!isOpen) {
          onClose();
        }
      }}
    >
      <DialogContent
        title="Copy the secret"
        description="Your receiver verifies events with it. It is shown only now and cannot be read again."
        footer={
          <Button variant="primary" className="max-md:h-11" onClick={onClose}>
            I have copied it
          </Button>
        }
      >
        <div className="flex items-center gap-2 rounded-md bg-code py-1 pr-1 pl-3">
          <code className="min-w-0 flex-1 font-mono text-sm break-all">{secret}</code>
          <CopyButton text={secret} label="the secret" />
        </div>
        {expiry !== null && (
          <p className="mt-2 text-sm text-muted">
            The old secret is valid too until {formatExactTime(new Date(expiry))}.
          </p>
        )}
      </DialogContent>
    </Dialog>
  );
}
