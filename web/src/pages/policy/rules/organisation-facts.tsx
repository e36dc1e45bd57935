// What else the policy of the organisation has: approval settings, hooks, and who changed it last.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { type ApprovalTerms, lastPolicyChangeQuery, type Policy } from "@/api/queries/policy";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";

import { formatLimit, listHooks } from "../model";
import { RuleText } from "../marks";

export function OrganisationFacts({ policy }: { policy: Policy }) {
  const { data: change } = useQuery(lastPolicyChangeQuery);
  const hooks = listHooks(policy.permissions.hooks);
  return (
    <dl className="grid grid-cols-[5rem_minmax(0,1fr)] gap-y-1">
      <Fact title="Approvals">
        <SafeText>{describeTerms(policy.approvals)}</SafeText>
      </Fact>
      {hooks.length > 0 && (
        <Fact title="Hooks">
          <ul className="flex flex-col gap-1">
            {hooks.map((hook, index) => (
              <li key={index}>
                {hook.event} {hook.matcher !== "" && <RuleText>{hook.matcher}</RuleText>} runs{" "}
                <RuleText>{hook.what}</RuleText>
              </li>
            ))}
          </ul>
        </Fact>
      )}
      {policy.updated_at !== null && (
        <Fact title="Changed">
          <Time value={policy.updated_at} />
          {change?.principal_name != null && (
            <>
              {" by "}
              <SafeText>{change.principal_name}</SafeText>
            </>
          )}
        </Fact>
      )}
    </dl>
  );
}

function Fact({ title, children }: { title: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-muted">{title}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}

function describeTerms({ expires_after_seconds: seconds, outcome, role, two_people: needsTwo }: ApprovalTerms): string {
  const limit =
    seconds === null
      ? "wait without a time limit"
      : `without a decision are ${outcome === "deny" ? "denied" : "allowed"} after ${formatLimit(seconds)}`;
  return [
    `Calls ${limit}`,
    ...(role === null ? [] : [`only the role ${role} can decide`]),
    ...(needsTwo ? ["who asked for the work cannot decide"] : []),
  ].join("; ");
}
