// What to do if a branch cannot be merged into because it is checked out.
import { ApiError } from "@/api/errors";
import { Button } from "@/design/components/button";

export function isCheckedOut(error: unknown): boolean {
  return error instanceof ApiError && error.details["code"] === "branch_checked_out";
}

/** A branch of its own for the changes of a session. */
export function branchOf(sessionId: string): string {
  return `footplate/${sessionId}`;
}

export function CheckedOutHelp({ branch, onUse }: { branch: string; onUse: () => void }) {
  return (
    <div className="flex flex-col items-start gap-2">
      <p className="text-muted">
        Nothing was changed. Merge into another branch, and then run <code>git merge {branch}</code> in that checkout.
      </p>
      <Button size="sm" className="max-md:h-11" onClick={onUse}>
        Use a new branch
      </Button>
    </div>
  );
}
