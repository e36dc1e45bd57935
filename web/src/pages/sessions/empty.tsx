// What the list shows when it has no session.
import { Link } from "@tanstack/react-router";

import { Button, buttonStyle } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";

interface Props {
  isFiltered: boolean;
  canOperate: boolean;
  onClear: () => void;
}

export function NoSessions({ isFiltered, canOperate, onClear }: Props) {
  if (isFiltered) {
    return (
      <EmptyState
        title="No session matches these filters"
        action={<Button onClick={onClear}>Clear the filters</Button>}
      >
        Archived sessions are not shown.
      </EmptyState>
    );
  }
  return (
    <EmptyState
      title="No sessions yet"
      command='footplate run "Make the tests pass"'
      {...(canOperate
        ? {
            action: (
              <Link to="/new" className={buttonStyle({ variant: "primary" })}>
                New session
              </Link>
            ),
          }
        : {})}
    >
      A session is an agent that works on a task. It appears here as soon as it starts.
    </EmptyState>
  );
}
