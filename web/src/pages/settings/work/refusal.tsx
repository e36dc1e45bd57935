// Why a form cannot be shown: the role of the caller, or that the entry is archived.
import type { ReactNode } from "react";

import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";

interface Circumstances {
  noun: string;
  canChange: boolean;
  /** The roles that may, such as "operator or member". */
  roles: string;
  isArchived: boolean;
  onClose: () => void;
}

/** Null: the form can be shown. */
export function findRefusal({ noun, canChange, roles, isArchived, onClose }: Circumstances): ReactNode {
  const back = <Button onClick={onClose}>Show all {noun}s</Button>;
  if (!canChange) {
    return (
      <EmptyState title={`You can only look at ${noun}s`} action={back}>
        Your role does not permit to change them. Ask an administrator for the role {roles}.
      </EmptyState>
    );
  }
  return isArchived ? (
    <EmptyState title={`This ${noun} is archived`} action={back}>
      It cannot be changed any more. Create a new one.
    </EmptyState>
  ) : null;
}
