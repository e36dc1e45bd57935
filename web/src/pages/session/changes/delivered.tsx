// What a merge or a push did.
import { Check } from "lucide-react";

import { Button } from "@/design/components/button";
import { CopyButton } from "@/design/components/copy";
import { Dialog, DialogContent } from "@/design/components/dialog";
import { SafeText } from "@/design/text/text";
import type { Delivery } from "./merge-dialog";

const TITLES: Record<Delivery["status"], string> = {
  merged: "Merged",
  fast_forwarded: "Merged",
  pushed: "Pushed",
  unchanged: "The branch already has these changes",
};

interface DeliveredProps {
  result: Delivery;
  projectName: string;
  onClose: () => void;
}

export function Delivered({ result, projectName, onClose }: DeliveredProps) {
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
        title={TITLES[result.status]}
        footer={
          <Button variant="primary" className="max-md:h-11 max-md:flex-1" onClick={onClose}>
            Done
          </Button>
        }
      >
        <div className="flex flex-col gap-3">
          <p className="flex items-start gap-2">
            <Check aria-hidden className="mt-0.5 size-4 shrink-0 text-success" />
            <span className="min-w-0 break-words">
              The branch <SafeText className="font-mono text-sm">{result.branch}</SafeText> of{" "}
              <SafeText>{projectName}</SafeText> {result.status === "unchanged" ? "is at" : "is now at"} this commit:
            </span>
          </p>
          <CopyButton text={result.commit} label="the commit" showText className="self-start" />
          {result.before !== null && result.status !== "unchanged" && (
            <p className="text-sm text-muted">
              Before, it was at <code className="font-mono">{result.before.slice(0, 12)}</code>.
              {result.status === "fast_forwarded" && " No merge commit was necessary."}
            </p>
          )}
        </div>
      </DialogContent>
    </Dialog>
  );
}
