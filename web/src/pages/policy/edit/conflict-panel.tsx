// Another member saved rules meanwhile: what they changed, and how to continue.
import { useQuery } from "@tanstack/react-query";

import { lastPolicyChangeQuery, type Policy } from "@/api/queries/policy";
import { Button } from "@/design/components/button";
import { SafeText } from "@/design/text/text";

import { ChangeList } from "./change-list";
import { countChanges, findChanges } from "./changes";

interface Props {
  base: Policy;
  theirs: Policy;
  onRebase: () => void;
  onDiscard: () => void;
}

export function ConflictPanel({ base, theirs, onRebase, onDiscard }: Props) {
  const { data: change } = useQuery(lastPolicyChangeQuery);
  const changes = findChanges(base, theirs);
  return (
    <section
      role="alert"
      aria-label="Changed meanwhile"
      className="flex flex-col gap-3 rounded-md border border-waiting/40 bg-waiting-soft p-3"
    >
      <div>
        <p className="font-medium">
          <SafeText>{change?.principal_name ?? "Another member"}</SafeText> changed the rules after you opened them
        </p>
        <p>Your changes were not saved, so that they do not undo these. You can apply yours to the new rules.</p>
      </div>
      <div className="rounded-md bg-canvas">
        {countChanges(changes) === 0 ? (
          <p className="p-3 text-muted">The rules are the same again.</p>
        ) : (
          <ChangeList changes={changes} />
        )}
      </div>
      <div className="flex flex-wrap gap-2">
        <Button variant="primary" onClick={onRebase}>
          Apply my changes to them
        </Button>
        <Button onClick={onDiscard}>Discard my changes</Button>
      </div>
    </section>
  );
}
