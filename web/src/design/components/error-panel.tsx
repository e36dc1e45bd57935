// An error: what happened, why, what to do, and an id to copy.
import { CircleAlert } from "lucide-react";
import type { ReactNode } from "react";

import { ApiError } from "../../api/errors";
import { cn } from "../classes";
import { MessageText } from "../text/text";
import { Button } from "./button";
import { CopyButton } from "./copy";

interface ErrorPanelProps {
  error: unknown;
  /** What was not possible, such as "The sessions could not be loaded". */
  title?: string;
  /** What to do, in place of the advice of the server. */
  help?: ReactNode;
  onRetry?: () => void;
  retryLabel?: string;
  className?: string;
}

export function ErrorPanel({
  error,
  title,
  help: ownHelp,
  onRetry,
  retryLabel = "Try again",
  className,
}: ErrorPanelProps) {
  const message = error instanceof Error ? error.message : String(error);
  const help = error instanceof ApiError ? error.help : null;
  const requestId = error instanceof ApiError ? error.requestId : null;
  return (
    <div role="alert" className={cn("flex gap-3 rounded-md border border-failed/40 bg-failed-soft p-3", className)}>
      <CircleAlert aria-hidden className="mt-0.5 size-4 shrink-0 text-failed" />
      <div className="min-w-0 flex-1">
        <p className="font-medium">{title ?? (error instanceof ApiError ? error.title : "Something went wrong")}</p>
        <p className="break-words">
          <MessageText>{message}</MessageText>
        </p>
        {ownHelp}
        {ownHelp === undefined && help !== null && (
          <p className="break-words text-muted">
            <MessageText>{help}</MessageText>
          </p>
        )}
        {(requestId !== null || onRetry !== undefined) && (
          <div className="mt-2 flex flex-wrap items-center gap-2">
            {onRetry !== undefined && (
              <Button size="sm" onClick={onRetry}>
                {retryLabel}
              </Button>
            )}
            {requestId !== null && <CopyButton text={requestId} label="the request ID" showText />}
          </div>
        )}
      </div>
    </div>
  );
}
