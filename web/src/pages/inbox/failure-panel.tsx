// A turn that failed, or a merge that git could not make: what happened, and what a person can do about it.
import { useRef, useState } from "react";

import { useActions } from "@/actions/use-actions";
import type { InboxItem } from "@/api/contract";
import { Button } from "@/design/components/button";
import { CopyButton } from "@/design/components/copy";
import { Textarea } from "@/design/components/input";
import { CodeBlock, SafeText } from "@/design/text/text";
import type { Decisions } from "./decisions";
import { Footer } from "./footer";

interface Props {
  item: InboxItem;
  canOperate: boolean;
  decisions: Decisions;
}

export function FailurePanel({ item, canOperate, decisions }: Props) {
  const { failure, merge_conflict: conflict } = item;
  const [text, setText] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  const dismiss = (): void => {
    void decisions.dismiss(item);
  };
  useActions(canOperate ? { "inbox.reply": () => field.current?.focus(), "inbox.dismiss": dismiss } : {});

  function send(): void {
    if (text.trim() !== "") {
      void decisions.message(item, text.trim());
    }
  }

  return (
    <>
      <div className="flex flex-col gap-4">
        {failure !== null && (
          <section className="flex flex-col gap-2">
            <h3 className="text-lg font-semibold text-failed">
              <SafeText>{failure.title}</SafeText>
            </h3>
            <p className="break-words whitespace-pre-wrap">
              <SafeText limit={Number.POSITIVE_INFINITY}>{failure.message}</SafeText>
            </p>
          </section>
        )}
        {conflict !== null && (
          <section className="flex flex-col gap-2">
            <h3 className="text-lg font-semibold text-failed">
              {conflict.branch === null ? (
                "The files of the child sessions cannot be merged"
              ) : (
                <>
                  The changes cannot be merged into <SafeText className="font-mono">{conflict.branch}</SafeText>
                </>
              )}
            </h3>
            <p className="break-words whitespace-pre-wrap">
              <SafeText>{conflict.message}</SafeText>
            </p>
            {conflict.files.length > 0 && (
              <CodeBlock label="Files">{conflict.files.map((file) => describeFile(file)).join("\n")}</CodeBlock>
            )}
          </section>
        )}
        <p className="flex items-center gap-1 text-sm text-muted">
          <span className="shrink-0">{failure === null ? "Conflict" : "Turn"}</span>{" "}
          <CopyButton text={item.id} label="the ID" showText />
        </p>
      </div>
      <Footer hint={canOperate ? null : "You can see this item. Your role does not permit to continue the session."}>
        <form
          className="flex w-full flex-col gap-2"
          onSubmit={(event) => {
            event.preventDefault();
            send();
          }}
        >
          <label htmlFor="continue" className="text-sm font-medium">
            Continue with a message
          </label>
          <Textarea
            id="continue"
            ref={field}
            rows={2}
            className="min-h-14"
            disabled={!canOperate}
            placeholder={failure === null ? "Resolve the conflicts and merge again." : "Try again."}
            value={text}
            onChange={(event) => {
              setText(event.target.value);
            }}
            onKeyDown={(event) => {
              if (event.key === "Escape") {
                event.currentTarget.blur();
              } else if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
                event.preventDefault();
                send();
              }
            }}
          />
          <div className="flex gap-2 max-md:[&>button]:h-11 max-md:[&>button]:flex-1">
            <Button type="submit" variant="primary" shortcut="⏎" disabled={!canOperate || text.trim() === ""}>
              Send
            </Button>
            <Button shortcut="x" disabled={!canOperate} onClick={dismiss}>
              Dismiss
            </Button>
          </div>
        </form>
      </Footer>
    </>
  );
}

function describeFile(file: Record<string, unknown>): string {
  const path = typeof file["path"] === "string" ? file["path"] : JSON.stringify(file);
  return typeof file["reason"] === "string" ? `${path}  (${file["reason"]})` : path;
}
