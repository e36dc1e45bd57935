// A thin line about the session itself: an error, an interrupt, a lost worker.
import { Link } from "@tanstack/react-router";
import { CircleAlert, TriangleAlert } from "lucide-react";

import { SafeText } from "@/design/text/text";

import type { Notice } from "../log/notices";

export function NoticeRow({ notice }: { notice: Notice }) {
  if (notice.tone !== "quiet") {
    const isFailed = notice.tone === "failed";
    const Icon = isFailed ? CircleAlert : TriangleAlert;
    return (
      <div
        className={`my-2 flex gap-2 rounded-md px-3 py-2 ${isFailed ? "bg-failed-soft" : "bg-waiting-soft"}`}
        role={isFailed ? "alert" : undefined}
      >
        <Icon aria-hidden className={`mt-0.5 size-4 shrink-0 ${isFailed ? "text-failed" : "text-waiting"}`} />
        <div className="min-w-0 flex-1 break-words">
          <p className="font-medium">{notice.title}</p>
          {notice.detail !== null && <SafeText className="whitespace-pre-wrap">{notice.detail}</SafeText>}
        </div>
      </div>
    );
  }
  return (
    <div className="flex min-h-8 items-center gap-3 text-sm text-muted">
      <span aria-hidden className="h-px flex-1 bg-line" />
      <span className="min-w-0 text-center">
        {notice.sessionId === undefined ? (
          notice.title
        ) : (
          <Link to="/sessions/$sessionId" params={{ sessionId: notice.sessionId }} className="underline">
            {notice.title}
          </Link>
        )}
        {notice.detail !== null && (
          <>
            {". "}
            <SafeText>{notice.detail}</SafeText>
          </>
        )}
      </span>
      <span aria-hidden className="h-px flex-1 bg-line" />
    </div>
  );
}
