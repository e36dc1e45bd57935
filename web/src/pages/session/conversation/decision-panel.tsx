// A call or a question that waits, decided right here with the panels of the inbox.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";

import { inboxItemQuery } from "@/api/queries/inbox";
import { ApprovalPanel } from "@/pages/inbox/approval-panel";
import { useDecisions } from "@/pages/inbox/decisions";
import { QuestionPanel } from "@/pages/inbox/question-panel";

import { useConversation } from "./context";

/** A key decides only what has been on the screen for this long. */
const SEEN_MS = 300;
const nothing = (): void => undefined;

export function DecisionPanel({ eventId }: { eventId: string }) {
  const { mayApprove, mayOperate } = useConversation();
  const { data: item, isError } = useQuery({ ...inboxItemQuery(eventId), retry: 2 });
  const decisions = useDecisions(nothing);
  const box = useRef<HTMLDivElement>(null);
  const isSeen = useIsSeen(box);
  return (
    <div
      ref={box}
      data-testid="decision"
      className="mt-1 mb-2 ml-6 flex flex-col gap-3 overflow-clip rounded-md border border-waiting/50 px-4 pt-3 md:px-6"
    >
      {item === undefined && (
        <p className="pb-3 text-muted" role="status">
          {isError ? "It does not wait any more, or it cannot be loaded." : "Loading what it waits for."}
        </p>
      )}
      {item?.approval != null && (
        <ApprovalPanel item={item} approval={item.approval} canDecide={mayApprove && isSeen} decisions={decisions} />
      )}
      {item?.question != null && (
        <QuestionPanel item={item} question={item.question} canAnswer={mayOperate} decisions={decisions} />
      )}
      {item !== undefined && (
        <p className="pb-3 text-sm text-muted">
          <Link to="/inbox" search={{ item: item.id }} className="underline">
            Open in the inbox
          </Link>{" "}
          to assign or snooze it.
        </p>
      )}
    </div>
  );
}

/** The list keeps rows around the visible part, so being rendered does not mean being seen. */
function useIsSeen(box: React.RefObject<HTMLDivElement | null>): boolean {
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (element === null) {
      return undefined;
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    const observer = new IntersectionObserver(
      ([entry]) => {
        clearTimeout(timer);
        if (entry?.isIntersecting === true) {
          timer = setTimeout(() => {
            setSeen(true);
          }, SEEN_MS);
        } else {
          setSeen(false);
        }
      },
      { threshold: 0.3 },
    );
    observer.observe(element);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
    };
  }, [box]);
  return isSeen;
}
