// What a page shows when there is nothing yet: one sentence, one command to copy, one button.
import type { ReactNode } from "react";

import { CopyButton } from "./copy";

interface EmptyStateProps {
  title: string;
  children?: ReactNode;
  /** A command that does the same in a terminal. */
  command?: string;
  action?: ReactNode;
}

export function EmptyState({ title, children, command, action }: EmptyStateProps) {
  return (
    <div className="flex flex-col items-center gap-4 px-4 py-16 text-center">
      <div className="max-w-96">
        <h2 className="text-lg font-semibold">{title}</h2>
        {children !== undefined && <p className="mt-1 text-muted">{children}</p>}
      </div>
      {command !== undefined && (
        <div className="flex max-w-full items-center gap-2 rounded-md bg-code py-1 pr-1 pl-3">
          <code className="overflow-x-auto font-mono text-sm whitespace-pre">{command}</code>
          <CopyButton text={command} label="the command" />
        </div>
      )}
      {action}
    </div>
  );
}
