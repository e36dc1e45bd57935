// Asks before something that cannot be undone.
import { useState } from "react";

import { Button } from "@/design/components/button";
import { Dialog, DialogContent } from "@/design/components/dialog";
import { SafeText } from "@/design/text/text";

export interface Confirmation {
  title: string;
  text: string;
  button: string;
  run: () => Promise<void>;
}

export function ConfirmDialog({ confirmation, onClose }: { confirmation: Confirmation; onClose: () => void }) {
  const [isRunning, setRunning] = useState(false);
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
        title={confirmation.title}
        description={<SafeText>{confirmation.text}</SafeText>}
        footer={
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button
              variant="danger"
              disabled={isRunning}
              onClick={() => {
                setRunning(true);
                void confirmation.run().finally(onClose);
              }}
            >
              {confirmation.button}
            </Button>
          </>
        }
      />
    </Dialog>
  );
}
