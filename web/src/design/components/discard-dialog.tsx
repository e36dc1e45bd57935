// Asks before a form with changes is closed.
import { Button } from "./button";
import { Dialog, DialogContent } from "./dialog";

interface Props {
  /** What was not saved, such as "schedule". */
  noun: string;
  onKeep: () => void;
  onDiscard: () => void;
}

export function DiscardDialog({ noun, onKeep, onDiscard }: Props) {
  return (
    <Dialog
      open
      onOpenChange={(isOpen) => {
        if (!isOpen) {
          onKeep();
        }
      }}
    >
      <DialogContent
        title="Discard the changes?"
        description={`The ${noun} was not saved.`}
        footer={
          <>
            <Button onClick={onKeep}>Keep editing</Button>
            <Button variant="danger" onClick={onDiscard}>
              Discard
            </Button>
          </>
        }
      />
    </Dialog>
  );
}
