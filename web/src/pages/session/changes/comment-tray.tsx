// The comments of the session below the diff: drafts to send together, and what was sent before.
import { ChevronDown, ChevronUp, MessageSquare } from "lucide-react";

import { Button } from "@/design/components/button";
import { SafeText } from "@/design/text/text";
import { CommentCard } from "./comment-card";
import { linesOf } from "./diff-items";
import type { Comment } from "./queries";
import { describeLines, type Lines, type Turn } from "./ranges";
import type { Comments } from "./use-comments";

interface CommentTrayProps {
  sessionId: string;
  comments: Comments;
  turns: readonly Turn[];
  canOperate: boolean;
  /** Where the diff that is shown has a comment. Null: its code is gone. Undefined: it belongs to another diff. */
  placeOf: (comment: Comment) => Lines | null | undefined;
  isOpen: boolean;
  onToggle: () => void;
  onShow: (comment: Comment) => void;
  onSend: () => void;
}

export function CommentTray(props: CommentTrayProps) {
  const { sessionId, comments, turns, canOperate, placeOf, isOpen, onToggle, onShow, onSend } = props;
  const drafts = comments.drafts.length;
  const sent = comments.all.length - drafts;
  const own = comments.own.length;
  return (
    <section aria-label="Comments" className="border-t bg-raised">
      {isOpen && (
        <ol className="max-h-[40vh] divide-y overflow-y-auto border-b">
          {[...comments.drafts, ...comments.all.filter((one) => one.sent_event_id !== null).reverse()].map(
            (comment) => (
              <li key={comment.id} className="flex flex-col gap-1 px-4 py-3">
                <button
                  type="button"
                  className="flex min-h-6 max-w-full items-center gap-1 self-start text-sm text-accent hover:underline"
                  onClick={() => {
                    onShow(comment);
                  }}
                >
                  <SafeText className="min-w-0 truncate font-mono">{comment.path}</SafeText>
                  <span className="shrink-0">
                    {describeLines(placeOf(comment) ?? linesOf(comment))}
                    {comment.turn_id !== null &&
                      `, turn ${turns.findIndex((turn) => turn.id === comment.turn_id) + 1 || "?"}`}
                  </span>
                </button>
                <pre className="max-h-16 overflow-hidden border-l-2 border-line-strong pl-3 font-mono text-xs text-muted">
                  <SafeText limit={400}>{comment.code}</SafeText>
                </pre>
                <CommentCard
                  sessionId={sessionId}
                  comment={comment}
                  comments={comments}
                  turns={turns}
                  canOperate={canOperate}
                  isOutdated={placeOf(comment) === null}
                />
              </li>
            ),
          )}
        </ol>
      )}
      <div className="flex min-h-12 items-center gap-3 px-4 py-1">
        <button
          type="button"
          aria-expanded={isOpen}
          className="flex min-h-8 items-center gap-2 rounded-md font-medium hover:underline max-md:min-h-11"
          onClick={onToggle}
        >
          <MessageSquare aria-hidden className="size-4 text-muted" />
          <span>{describeCount(drafts, sent)}</span>
          {isOpen ? <ChevronDown className="size-4" /> : <ChevronUp className="size-4" />}
        </button>
        {own < drafts && (
          <span className="text-sm text-muted max-md:hidden">
            {drafts - own === 1 ? "1 is" : `${drafts - own} are`} by others, who send them
          </span>
        )}
        {own > 0 && (
          <Button
            variant="primary"
            className="ml-auto max-md:h-11"
            disabled={!canOperate}
            title={canOperate ? "All go to the agent as one message" : "Your role does not permit sending comments"}
            shortcut="⇧S"
            onClick={onSend}
          >
            {own === 1 ? "Send to the agent" : `Send all ${own} to the agent`}
          </Button>
        )}
      </div>
    </section>
  );
}

function describeCount(drafts: number, sent: number): string {
  const parts = [
    ...(drafts > 0 ? [`${drafts} ${drafts === 1 ? "comment" : "comments"} not sent`] : []),
    ...(sent > 0 ? [`${sent} sent`] : []),
  ];
  return parts.join(", ");
}
