// Hooks: which run at which event, for what, and what they can do. Their runs are in the audit trail.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { agentsQuery, projectsQuery } from "@/api/queries/new-session";
import { policyQuery } from "@/api/queries/policy";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { SafeText } from "@/design/text/text";

import { RuleText } from "../marks";
import { groupHooks, HOOK_EVENTS, type OwnedHook } from "./model";

export default function HooksSection() {
  const policy = useQuery(policyQuery);
  const projects = useQuery(projectsQuery);
  const agents = useQuery(agentsQuery);
  const failed = [policy, projects, agents].find((query) => query.error !== null && query.data === undefined);
  if (failed !== undefined) {
    return (
      <ErrorPanel
        className="m-4"
        title="The hooks could not be loaded"
        error={failed.error}
        onRetry={() => void failed.refetch()}
      />
    );
  }
  if (policy.data === undefined || projects.data === undefined || agents.data === undefined) {
    return <SkeletonRows />;
  }
  const groups = groupHooks([
    { owner: "Organisation", hooks: policy.data.permissions.hooks },
    ...projects.data.data.map(({ name, permissions }) => ({ owner: `Project ${name}`, hooks: permissions.hooks })),
    ...agents.data.data.map(({ name, permissions }) => ({ owner: `Agent ${name}`, hooks: permissions?.hooks })),
  ]);
  if (groups.length === 0) {
    return (
      <EmptyState
        title="No hooks yet"
        command="footplate policy set --rules rules.json"
        action={
          <Link to="/policy" search={{ section: "edit" }} className="text-accent hover:underline">
            Add one to the organisation’s rules
          </Link>
        }
      >
        A hook is your own program, server or function. It runs at certain events of a session, such as before each call
        of a tool, and can deny it.
      </EmptyState>
    );
  }
  return (
    <div className="flex max-w-4xl flex-col gap-6 p-6 max-md:p-4">
      <p className="text-muted">
        Hooks run one after the other, from those of the organisation to those of the session, after the rules.{" "}
        <Link to="/policy" search={{ section: "audit", kind: "hook" }} className="text-accent underline">
          Show their runs
        </Link>
      </p>
      {groups.map(({ event, hooks }) => (
        <section key={event} aria-label={event} className="flex flex-col gap-2 border-t pt-4">
          <div>
            <h2 className="font-semibold">{event}</h2>
            <p className="text-sm text-muted">{HOOK_EVENTS[event] ?? ""}</p>
          </div>
          <ul className="border-t">
            {hooks.map((hook, index) => (
              <Hook key={index} hook={hook} />
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function Hook({ hook: { owner, matcher, kind, what, timeout, options } }: { hook: OwnedHook }) {
  return (
    <li className="flex min-h-9 flex-wrap items-center gap-x-4 gap-y-0.5 border-b py-1.5">
      <SafeText className="w-48 shrink-0 truncate max-md:w-full">{owner}</SafeText>
      <span className="w-40 shrink-0 text-muted max-md:w-auto">
        {matcher === "" ? (
          "everything"
        ) : (
          <>
            for <RuleText>{matcher}</RuleText>
          </>
        )}
      </span>
      <span className="min-w-0 flex-1">
        <span className="text-muted">{kind} </span>
        <RuleText>{what}</RuleText>
        {options !== "" && (
          <>
            <span className="text-muted"> with </span>
            <RuleText>{options}</RuleText>
          </>
        )}
      </span>
      {timeout !== null && <span className="text-sm text-muted">at most {timeout} s</span>}
    </li>
  );
}
