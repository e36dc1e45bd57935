// Writes to the agent: a message that waits for its turn, or one that steers the running turn, with files.
import { ChevronDown, Paperclip } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { displayShortcut } from "@/actions/shortcuts";
import { useActions } from "@/actions/use-actions";
import type { Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { Menu, MenuContent, MenuItem, MenuTrigger } from "@/design/components/menu";
import { cn } from "@/design/classes";

import { AttachmentList } from "./attachment-list";
import { refusalOf } from "./composer-state";
import { loadDraft, saveDraft } from "./drafts";
import { QueueState } from "./queue-state";
import { newKey, sendMessage, type WhenBusy } from "./send";
import { useAttachments } from "./use-attachments";

export function Composer({ session, mayOperate }: { session: Session; mayOperate: boolean }) {
  const sessionId = session.id;
  const [text, setText] = useState(() => loadDraft(sessionId));
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const [isDropping, setDropping] = useState(false);
  const attachments = useAttachments();
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const attempt = useRef<{ key: string; content: string } | null>(null);
  const refusal = refusalOf(session, mayOperate);
  const canWrite = refusal === null;
  const isBusy = session.status === "running" || session.status === "rescheduling";
  const canSend =
    canWrite && !isSending && !attachments.isUploading && (text.trim() !== "" || attachments.files.length > 0);

  useEffect(() => {
    saveDraft(sessionId, text);
  }, [sessionId, text]);

  async function send(whenBusy: WhenBusy): Promise<void> {
    if (!canSend) {
      return;
    }
    const sent = text.trim();
    const files = attachments.files;
    const content = JSON.stringify([sent, files.map((file) => file.id), whenBusy]);
    // The same message after a failure has the same key, so that it does not arrive twice.
    if (attempt.current?.content !== content) {
      attempt.current = { key: newKey(), content };
    }
    setSending(true);
    setError(null);
    try {
      await sendMessage(sessionId, { text: sent, files, whenBusy, key: attempt.current.key });
      attempt.current = null;
      setText("");
      attachments.clear();
    } catch (problem) {
      setError(problem);
    } finally {
      setSending(false);
      field.current?.focus();
    }
  }

  useActions({
    ...(canWrite
      ? {
          "session.reply": () => field.current?.focus(),
          "session.attach": () => picker.current?.click(),
        }
      : {}),
    ...(canSend
      ? {
          "session.send": () => void send("queue"),
          "session.steer": () => void send("steer"),
          "session.interrupt-and-send": () => void send("interrupt"),
        }
      : {}),
  });

  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- files can be dropped; a button does the same
    <section
      aria-label="Message"
      className={cn("border-t bg-canvas px-4 pt-2 pb-3 md:px-8", isDropping && "bg-selected")}
      onDragOver={(event) => {
        if (canWrite && event.dataTransfer.types.includes("Files")) {
          event.preventDefault();
          setDropping(true);
        }
      }}
      onDragLeave={() => {
        setDropping(false);
      }}
      onDrop={(event) => {
        setDropping(false);
        if (canWrite && event.dataTransfer.files.length > 0) {
          event.preventDefault();
          attachments.add([...event.dataTransfer.files]);
        }
      }}
    >
      <div className="mx-auto max-w-[52rem]">
        {error !== null && <ErrorPanel className="mb-2" title="The message was not sent" error={error} />}
        <AttachmentList attachments={attachments} />
        <div className="rounded-lg border border-line-strong transition-colors focus-within:border-accent hover:border-faint">
          <textarea
            ref={field}
            aria-label="Message to the agent"
            rows={1}
            disabled={!canWrite}
            placeholder={refusal ?? (isDropping ? "Drop the files to attach them" : "Message the agent")}
            className="field-sizing-content block max-h-64 min-h-9 w-full resize-none bg-transparent px-3 pt-2 pb-1 outline-none disabled:opacity-60 max-md:text-lg"
            value={text}
            onChange={(event) => {
              setText(event.target.value);
            }}
            onPaste={(event) => {
              const files = [...event.clipboardData.files];
              if (files.length > 0) {
                event.preventDefault();
                attachments.add(files);
              }
            }}
            onKeyDown={(event) => {
              if (event.key === "Escape") {
                event.currentTarget.blur();
              } else if (
                event.key === "Enter" &&
                !event.shiftKey &&
                !event.altKey &&
                !event.ctrlKey &&
                !event.metaKey &&
                !event.nativeEvent.isComposing
              ) {
                event.preventDefault();
                void send("queue");
              }
            }}
          />
          <div className="flex items-center gap-2 p-1.5">
            <Button
              variant="quiet"
              size="icon"
              aria-label="Attach files"
              title="Attach files, or paste or drop them"
              disabled={!canWrite}
              className="max-md:size-11"
              onClick={() => picker.current?.click()}
            >
              <Paperclip />
            </Button>
            <input
              ref={picker}
              type="file"
              multiple
              hidden
              aria-label="Files to attach"
              onChange={(event) => {
                attachments.add([...(event.target.files ?? [])]);
                event.target.value = "";
              }}
            />
            <QueueState session={session} isBusy={isBusy} />
            <span className="flex-1" />
            {isBusy && (
              <Button
                size="md"
                disabled={!canSend}
                shortcut={displayShortcut("alt+enter").join("")}
                title="The agent reads it in the running turn, after its current step"
                className="max-md:h-11"
                onClick={() => void send("steer")}
              >
                Steer<span className="max-md:sr-only">now</span>
              </Button>
            )}
            <div className="flex">
              <Button
                variant="primary"
                disabled={!canSend}
                shortcut="⏎"
                className={cn("max-md:h-11", isBusy && "rounded-r-none")}
                onClick={() => void send("queue")}
              >
                {isBusy ? "Queue" : "Send"}
              </Button>
              {isBusy && (
                <Menu>
                  <MenuTrigger
                    render={
                      <Button
                        variant="primary"
                        aria-label="More ways to send"
                        disabled={!canSend}
                        className="w-7 rounded-l-none border-l border-l-on-accent/30 px-0 max-md:h-11 max-md:w-11"
                      />
                    }
                  >
                    <ChevronDown />
                  </MenuTrigger>
                  <MenuContent align="end" side="top">
                    <MenuItem onClick={() => void send("queue")}>Queue: after the running turn</MenuItem>
                    <MenuItem onClick={() => void send("steer")}>Steer: into the running turn</MenuItem>
                    <MenuItem isDangerous onClick={() => void send("interrupt")}>
                      Interrupt the turn and send
                    </MenuItem>
                  </MenuContent>
                </Menu>
              )}
            </div>
          </div>
        </div>
      </div>
    </section>
  );
}
