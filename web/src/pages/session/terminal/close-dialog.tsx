// Closes the shell for everybody, after a question: programs that run in it end.
import { useState } from "react";

import { request } from "@/api/client";
import { Button } from "@/design/components/button";
import { Dialog, DialogContent } from "@/design/components/dialog";
import { ErrorPanel } from "@/design/components/error-panel";

export function CloseDialog({ sessionId, onClose }: { sessionId: string; onClose: () => void }) {
  const [error, setError] = useState<unknown>(null);

  async function close(): Promise<void> {
    try {
      await request("POST", `/v1/sessions/${encodeURIComponent(sessionId)}/events`, {
        body: { events: [{ type: "user.interrupt" }] },
      });
      onClose();
    } catch (failure) {
      setError(failure);
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
        title="Close the shell?"
        description="Programs that run in it end, for everybody who uses it. The files stay, and the queue continues."
        footer={
          <>
            <Button onClick={onClose}>Keep it open</Button>
            <Button variant="danger" onClick={() => void close()}>
              Close the shell
            </Button>
          </>
        }
      >
        {error === null ? undefined : <ErrorPanel title="The shell was not closed" error={error} />}
      </DialogContent>
    </Dialog>
  );
}
