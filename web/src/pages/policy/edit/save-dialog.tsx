// Shows what would change, before the organisation's rules are saved.
import { useState } from "react";

import { Button } from "@/design/components/button";
import { Dialog, DialogContent } from "@/design/components/dialog";

import { ChangeList } from "./change-list";
import { countChanges, type PolicyChanges } from "./changes";

interface Props {
  changes: PolicyChanges;
  consequence: string | null;
  onSave: () => Promise<void>;
  onClose: () => void;
}

export function SaveDialog({ changes, consequence, onSave, onClose }: Props) {
  const [isSaving, setSaving] = useState(false);
  const count = countChanges(changes);
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
        title={count === 1 ? "Save this change?" : `Save these ${count.toLocaleString("en-US")} changes?`}
        description="They apply to every session of the organisation within a second, also to running turns."
        footer={
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button
              variant="primary"
              disabled={isSaving}
              onClick={() => {
                setSaving(true);
                void onSave();
              }}
            >
              Save
            </Button>
          </>
        }
      >
        <div className="flex flex-col gap-3">
          <ChangeList changes={changes} consequence={consequence} />
        </div>
      </DialogContent>
    </Dialog>
  );
}
