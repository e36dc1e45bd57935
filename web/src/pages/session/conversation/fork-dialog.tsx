// Forks the session at an event: a new session that continues from there, with another message if you like.
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { request } from "@/api/client";
import { keys } from "@/api/keys";
import type { Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { Dialog, DialogContent } from "@/design/components/dialog";
import { ErrorPanel } from "@/design/components/error-panel";
import { Field } from "@/design/components/field";
import { Input, Textarea } from "@/design/components/input";
import { showToast } from "@/design/components/toast";
import type { ForkPoint } from "./fork-point";

interface Props {
  session: Session;
  point: ForkPoint;
  onClose: () => void;
}

export function ForkDialog({ session, point, onClose }: Props) {
  const { eventId, place } = point;
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [title, setTitle] = useState(session.title === null ? "" : `${session.title} (fork)`);
  const [text, setText] = useState(point.text);
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);

  async function fork(): Promise<void> {
    setSending(true);
    try {
      const message = { type: "user.message", content: [{ type: "text", text: text.trim() }] };
      const created = await request<Session>("POST", `/v1/sessions/${encodeURIComponent(session.id)}/fork`, {
        body: {
          ...(eventId === null ? {} : { at_event_id: eventId }),
          ...(title.trim() === "" ? {} : { title: title.trim() }),
          ...(text.trim() === "" ? {} : { initial_events: [message] }),
        },
      });
      void queries.invalidateQueries({ queryKey: keys.sessions });
      onClose();
      await navigate({ to: "/sessions/$sessionId", params: { sessionId: created.id } });
      showToast({ title: "This is the fork", description: "The original session has not changed." });
    } catch (problem) {
      setError(problem);
      setSending(false);
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
        title="Fork here"
        description={`A new session with the conversation and the files as they were ${place}. This session does not change.`}
        footer={
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button variant="primary" disabled={isSending} shortcut="⏎" onClick={() => void fork()}>
              Fork
            </Button>
          </>
        }
      >
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- keys of its fields */}
        <form
          className="flex flex-col gap-3 pb-2"
          onSubmit={(event) => {
            event.preventDefault();
            void fork();
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing && !isSending) {
              event.preventDefault();
              void fork();
            }
          }}
        >
          <Field label="Continue with a message" hint="Optional. Without it, the fork waits for you.">
            {(control) => (
              <Textarea
                {...control}
                // oxlint-disable-next-line jsx-a11y/no-autofocus -- the person has just opened this dialog
                autoFocus
                rows={3}
                value={text}
                onChange={(event) => {
                  setText(event.target.value);
                }}
              />
            )}
          </Field>
          <Field label="Title">{(control) => <Input {...control} value={title} onValueChange={setTitle} />}</Field>
          {error !== null && <ErrorPanel title="The session was not forked" error={error} />}
        </form>
      </DialogContent>
    </Dialog>
  );
}
