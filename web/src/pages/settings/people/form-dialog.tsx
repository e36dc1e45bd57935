// A form in a dialog. A click beside it does not close it, so that what was typed stays.
import type { ReactNode } from "react";

import { displayShortcut } from "@/actions/shortcuts";
import { Button } from "@/design/components/button";
import { Dialog, DialogContent } from "@/design/components/dialog";

interface Props {
  title: string;
  /** The id of the form, and the name of the button that submits it. */
  formId: string;
  button: string;
  isDangerous?: boolean;
  isReady?: boolean;
  onClose: () => void;
  children: ReactNode;
}

export function FormDialog({ title, formId, button, isDangerous = false, isReady = true, onClose, children }: Props) {
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
        title={title}
        className="w-[40rem]"
        footer={
          <>
            <Button className="max-md:h-11 max-md:flex-1" onClick={onClose}>
              Cancel
            </Button>
            <Button
              type="submit"
              form={formId}
              variant={isDangerous ? "danger" : "primary"}
              className="max-md:h-11 max-md:flex-1"
              disabled={!isReady}
              shortcut={displayShortcut("mod+enter").join(" ")}
            >
              {button}
            </Button>
          </>
        }
      >
        {children}
      </DialogContent>
    </Dialog>
  );
}
