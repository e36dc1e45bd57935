// The field in which a person writes a comment, or edits a draft.
import { useEffect, useRef, useState } from "react";

import { Button } from "@/design/components/button";
import { Textarea } from "@/design/components/input";

const LONGEST = 10_000;
/** Texts that were not saved yet, by place: a box that scrolls out of view is taken out of the page. */
const unsaved = new Map<string, string>();

interface CommentBoxProps {
  /** Identifies the place, for text that is not saved yet. */
  place: string;
  /** Such as `Comment on lines 12–14`. */
  label: string;
  initialText?: string;
  saveLabel: string;
  /** Returns whether it was saved. */
  onSave: (text: string) => Promise<boolean>;
  /** Saves and sends at once. */
  onSend?: (text: string) => Promise<boolean>;
  onClose: () => void;
}

export function CommentBox(props: CommentBoxProps) {
  const { place, label, initialText = "", saveLabel, onSave, onSend, onClose } = props;
  const [text, setText] = useState(() => unsaved.get(place) ?? initialText);
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    field.current?.focus({ preventScroll: true });
  }, []);
  const isEmpty = text.trim() === "";

  async function finish(task: (text: string) => Promise<boolean>): Promise<void> {
    if (isEmpty || isBusy) {
      return;
    }
    setBusy(true);
    const isDone = await task(text.trim());
    setBusy(false);
    if (isDone) {
      close();
    }
  }
  function close(): void {
    unsaved.delete(place);
    onClose();
  }

  return (
    <form
      className="flex flex-col gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        void finish(onSave);
      }}
    >
      <Textarea
        ref={field}
        aria-label={label}
        placeholder={label}
        rows={3}
        maxLength={LONGEST}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          unsaved.set(place, event.target.value);
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape" && !event.nativeEvent.isComposing) {
            event.stopPropagation();
            close();
          } else if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) {
            event.preventDefault();
            event.stopPropagation();
            void finish(event.shiftKey && onSend !== undefined ? onSend : onSave);
          }
        }}
      />
      <div className="flex flex-wrap items-center gap-2 max-md:[&>button]:h-11">
        <Button type="submit" size="sm" variant="primary" disabled={isEmpty || isBusy} shortcut="Ctrl ⏎">
          {saveLabel}
        </Button>
        {onSend !== undefined && (
          <Button size="sm" disabled={isEmpty || isBusy} onClick={() => void finish(onSend)}>
            Send now
          </Button>
        )}
        <Button size="sm" variant="quiet" onClick={close}>
          Cancel
        </Button>
      </div>
    </form>
  );
}
