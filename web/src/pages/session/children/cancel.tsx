// Cancels a child session after a question, because that cannot be taken back.
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { request } from "@/api/client";
import { keys } from "@/api/keys";
import type { Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { Dialog, DialogContent } from "@/design/components/dialog";
import { ErrorPanel } from "@/design/components/error-panel";
import { showToast } from "@/design/components/toast";
import { shortLabel } from "../steps/model";

export function CancelDialog({ session, onClose }: { session: Session; onClose: () => void }) {
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const title = shortLabel(session.title ?? "this session");

  async function cancel(): Promise<void> {
    setSending(true);
    try {
      await request("POST", `/v1/sessions/${encodeURIComponent(session.id)}/end`, {
        body: { outcome: "cancelled", reason: "Cancelled in the dashboard." },
      });
      showToast({ title: "Cancelled", description: title });
      void queries.invalidateQueries({ queryKey: keys.sessions });
      onClose();
    } catch (failure) {
      setError(failure);
    } finally {
      setSending(false);
    }
  }

  return (
    <Dialog
      open
      onOpenChange={(isOpen) => {
        if (!isOpen) {
          onClose();
        }
      }}
    >
      <DialogContent
        title={`Cancel “${title}”?`}
        description="It ends now and cannot be continued; a fork of it can. Sessions that it started are cancelled too. The others of its group go on."
        footer={
          <>
            <Button onClick={onClose}>Keep it</Button>
            <Button variant="danger" disabled={isSending} onClick={() => void cancel()}>
              Cancel the session
            </Button>
          </>
        }
      >
        {error === null ? undefined : <ErrorPanel title="The session was not cancelled" error={error} />}
      </DialogContent>
    </Dialog>
  );
}
