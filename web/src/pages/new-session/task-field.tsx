// The field for the task, with its attachments: by button, drop and paste.
import { Image, LoaderCircle, Paperclip, X } from "lucide-react";
import { type DragEvent, type ReactNode, useRef, useState } from "react";

import { useAction } from "@/actions/use-actions";
import { cn } from "@/design/classes";
import { Button } from "@/design/components/button";
import { formatBytes } from "@/design/format";
import { SafeText } from "@/design/text/text";

import type { Attachments } from "./attachments";
import { type Attachment, isImage } from "./draft";

interface Props {
  prompt: string;
  attached: readonly Attachment[];
  attachments: Attachments;
  error: string | undefined;
  isDisabled: boolean;
  onChange: (prompt: string) => void;
}

export function TaskField({ prompt, attached, attachments, error, isDisabled, onChange }: Props) {
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useAction("new.attach", () => input.current?.click(), { isEnabled: !isDisabled });

  function onDrop(event: DragEvent): void {
    event.preventDefault();
    setOver(false);
    if (!isDisabled) {
      attachments.add(event.dataTransfer.files);
    }
  }
  return (
    <div className="flex flex-col gap-1">
      <div
        className={cn(
          "rounded-lg border border-line-strong bg-canvas focus-within:border-accent",
          isOver && "border-accent bg-accent-soft",
          error !== undefined && "border-failed",
        )}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => {
          setOver(false);
        }}
        onDrop={onDrop}
      >
        <textarea
          // oxlint-disable-next-line jsx-a11y/no-autofocus -- the page is for this field
          autoFocus
          aria-label="Task"
          aria-invalid={error === undefined ? undefined : true}
          aria-describedby={error === undefined ? undefined : "task-error"}
          placeholder="Describe the task: what should be true when it is done?"
          value={prompt}
          disabled={isDisabled}
          className="field-sizing-content max-h-[50vh] min-h-36 w-full resize-none bg-transparent px-4 py-3 text-lg outline-none"
          onChange={(event) => {
            onChange(event.target.value);
          }}
          onPaste={(event) => {
            if (event.clipboardData.files.length > 0) {
              event.preventDefault();
              attachments.add(event.clipboardData.files);
            }
          }}
        />
        <div className="flex flex-wrap items-center gap-2 px-2 pb-2">
          <Button
            variant="quiet"
            size="sm"
            className="max-md:h-11"
            disabled={isDisabled}
            onClick={() => input.current?.click()}
          >
            <Paperclip aria-hidden />
            Attach
          </Button>
          <input
            ref={input}
            type="file"
            multiple
            hidden
            aria-label="Files"
            onChange={(event) => {
              attachments.add(event.target.files ?? []);
              event.target.value = "";
            }}
          />
          {attached.map(({ fileId, name, type, size }) => (
            <Chip
              key={fileId}
              icon={isImage(type) ? <Image aria-hidden /> : <Paperclip aria-hidden />}
              name={name}
              note={formatBytes(size)}
              onRemove={() => {
                attachments.remove(fileId);
              }}
            />
          ))}
          {attachments.uploads.map(({ key, name, error: problem }) => (
            <Chip
              key={key}
              icon={problem === null ? <LoaderCircle aria-hidden className="animate-spin" /> : <X aria-hidden />}
              name={name}
              note={problem ?? "uploading"}
              isFailed={problem !== null}
              onRemove={() => {
                attachments.cancel(key);
              }}
            />
          ))}
          {attached.length + attachments.uploads.length === 0 && (
            <span className="text-sm text-faint max-md:hidden">or drop or paste files</span>
          )}
        </div>
      </div>
      {error !== undefined && (
        <p id="task-error" role="alert" className="text-sm text-failed">
          {error}
        </p>
      )}
    </div>
  );
}

interface ChipProps {
  icon: ReactNode;
  name: string;
  note: string;
  isFailed?: boolean;
  onRemove: () => void;
}

function Chip({ icon, name, note, isFailed = false, onRemove }: ChipProps) {
  return (
    <span
      data-testid="attachment"
      className="inline-flex h-7 max-w-full items-center gap-1.5 rounded-md border pl-2 text-sm [&_svg]:size-3.5 [&_svg]:shrink-0"
    >
      {icon}
      <SafeText className="max-w-48 truncate">{name}</SafeText>
      <span role={isFailed ? "alert" : undefined} className={cn("truncate text-muted", isFailed && "text-failed")}>
        {note}
      </span>
      <button
        type="button"
        aria-label={`Remove ${name}`}
        className="flex size-7 items-center justify-center text-muted hover:text-text"
        onClick={onRemove}
      >
        <X />
      </button>
    </span>
  );
}
