// A comment: who wrote it, its state, and what the agent answered.
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { cn } from "@/design/classes";
import { Badge } from "@/design/components/badge";
import { Button } from "@/design/components/button";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";
import { CommentBox } from "./comment-box";
import { linesOf } from "./diff-items";
import type { Comment } from "./queries";
import { describeLines, type Turn } from "./ranges";
import { type Comments, type CommentState, useCommentState } from "./use-comments";

const SHOWN_ANSWER = 600;

interface CommentCardProps {
  sessionId: string;
  comment: Comment;
  comments: Comments;
  turns: readonly Turn[];
  canOperate: boolean;
  /** Its lines were at another place when it was written. */
  isMoved?: boolean;
  /** The diff does not show its code any more. */
  isOutdated?: boolean;
  className?: string;
}

export function CommentCard(props: CommentCardProps) {
  const { sessionId, comment, comments, turns, canOperate, isMoved = false, isOutdated = false, className } = props;
  const [isEditing, setEditing] = useState(false);
  const state = useCommentState(sessionId, comment, turns);
  const canChange = canOperate && state.kind === "draft" && comments.isOwn(comment);
  return (
    <article
      aria-label={`Comment by ${comment.author.name ?? "a former member"}`}
      className={cn("flex flex-col gap-1.5 font-sans text-base whitespace-normal", className)}
    >
      <header className="flex flex-wrap items-center gap-x-2">
        <SafeText className="font-medium">{comment.author.name ?? "A former member"}</SafeText>
        <Time value={comment.sent_at ?? comment.created_at} className="text-sm text-muted" />
        <StateBadge state={state} />
        {isMoved && <span className="text-sm text-muted">written on {describeLines(linesOf(comment))}</span>}
        {isOutdated && (
          <>
            <Badge>outdated</Badge>
            <span className="text-sm text-muted">its code is not in these changes any more</span>
          </>
        )}
      </header>
      {isEditing ? (
        <CommentBox
          place={comment.id}
          label="Change the comment"
          initialText={comment.body}
          saveLabel="Save"
          onSave={(text) => comments.edit(comment, text)}
          onClose={() => {
            setEditing(false);
          }}
        />
      ) : (
        <p className="break-words whitespace-pre-wrap">
          <SafeText>{comment.body}</SafeText>
        </p>
      )}
      {canChange && !isEditing && (
        <div className="-ml-2 flex gap-1 max-md:[&>button]:h-11">
          <Button size="sm" variant="quiet" onClick={() => void comments.send([comment])}>
            Send now
          </Button>
          <Button
            size="sm"
            variant="quiet"
            onClick={() => {
              setEditing(true);
            }}
          >
            Edit
          </Button>
          <Button size="sm" variant="quiet" onClick={() => void comments.remove(comment)}>
            Delete
          </Button>
        </div>
      )}
      {(state.kind === "answered" || state.kind === "working") && (
        <Answer turn={state.turn} number={state.number} isWorking={state.kind === "working"} sessionId={sessionId} />
      )}
    </article>
  );
}

function StateBadge({ state }: { state: CommentState }) {
  switch (state.kind) {
    case "draft":
      return <Badge tone="waiting">not sent</Badge>;
    case "waiting":
      return <Badge>sent, waiting for the agent</Badge>;
    case "working":
      return <Badge tone="accent">the agent works on it</Badge>;
    case "answered":
      return state.turn.result.success ? (
        <Badge tone="success">answered</Badge>
      ) : (
        <Badge tone="failed">turn failed</Badge>
      );
  }
}

interface AnswerProps {
  sessionId: string;
  turn: Turn;
  number: number;
  isWorking: boolean;
}

function Answer({ sessionId, turn, number, isWorking }: AnswerProps) {
  const [isOpen, setOpen] = useState(false);
  const text = (turn.result.success ? turn.result.text : (turn.result.error_message ?? turn.result.text)).trim();
  const isLong = text.length > SHOWN_ANSWER || text.split("\n").length > 6;
  return (
    <div className="border-l-2 border-line-strong pl-3 text-sm">
      {text !== "" && !isWorking && (
        <p className={cn("break-words whitespace-pre-wrap", !isOpen && "line-clamp-4")}>
          <SafeText limit={isOpen ? 20_000 : SHOWN_ANSWER}>{text}</SafeText>
        </p>
      )}
      <span className="flex flex-wrap gap-x-3">
        {isLong && !isWorking && (
          <button
            type="button"
            className="min-h-6 text-accent hover:underline"
            onClick={() => {
              setOpen(!isOpen);
            }}
          >
            {isOpen ? "Show less" : "Show all"}
          </button>
        )}
        <Link
          to="/sessions/$sessionId"
          params={{ sessionId }}
          search={{ tab: "conversation", turn: turn.id }}
          className="inline-flex min-h-6 items-center text-accent hover:underline"
        >
          Turn {number} in the conversation
        </Link>
        {!isWorking && (
          <Link
            to="/sessions/$sessionId"
            params={{ sessionId }}
            search={{ tab: "changes", turn: turn.id }}
            className="inline-flex min-h-6 items-center text-accent hover:underline"
          >
            What it changed
          </Link>
        )}
      </span>
    </div>
  );
}
