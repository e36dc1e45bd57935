// The rules of all layers, the highest first: the organisation, projects, agents and sessions.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { ChevronRight } from "lucide-react";
import { type ReactNode, useRef } from "react";

import { useAction } from "@/actions/use-actions";
import { meQuery } from "@/api/queries/me";
import { agentsQuery, projectsQuery } from "@/api/queries/new-session";
import { type Permissions, policyQuery } from "@/api/queries/policy";
import { buttonStyle } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { Input } from "@/design/components/input";
import { SkeletonRows } from "@/design/components/skeleton";
import { SafeText } from "@/design/text/text";
import { compact } from "@/frame/search";

import { countRules, filterRules, listHooks, listToolsetPolicies, summarizeRules, type ToolsetPolicy } from "../model";
import { OrganisationFacts } from "./organisation-facts";
import { RuleList } from "./rule-list";
import { OutcomeMark } from "../marks";

const route = getRouteApi("/frame/policy");
const NO_RULES: Permissions = { deny: [], ask: [], allow: [] };

export default function RulesSection() {
  const { q = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const search = useRef<HTMLInputElement>(null);
  const policy = useQuery(policyQuery);
  const projects = useQuery(projectsQuery);
  const agents = useQuery(agentsQuery);
  const { data: me } = useQuery(meQuery);
  const canChange = me?.permissions.includes("change_policy") ?? false;
  useAction("policy.find", () => search.current?.focus());
  if (policy.error !== null && policy.data === undefined) {
    return (
      <ErrorPanel
        className="m-4"
        title="The rules could not be loaded"
        error={policy.error}
        onRetry={() => void policy.refetch()}
      />
    );
  }
  if (policy.data === undefined) {
    return <SkeletonRows />;
  }
  const organisation = policy.data.permissions;
  const owned = (projects.data?.data ?? []).map(({ id, name, permissions }) => ({ id, name, permissions, tools: [] }));
  const configured = (agents.data?.data ?? []).map((agent) => ({
    id: agent.id,
    name: agent.name,
    permissions: agent.permissions ?? NO_RULES,
    tools: listToolsetPolicies(agent),
  }));
  return (
    <div className="flex max-w-4xl flex-col gap-6 p-6 max-md:p-4">
      <div className="flex flex-wrap items-start gap-x-6 gap-y-3">
        <p className="min-w-0 flex-1 basis-80 text-muted">
          Rules of all layers apply together: <b>deny</b> wins over <b>ask</b>, and <b>ask</b> over <b>allow</b>. A call
          that no rule matches needs approval, except reads inside the working tree. Without any rules, all tools are
          allowed except those of MCP servers.
        </p>
        <Input
          ref={search}
          type="search"
          aria-label="Find a rule"
          placeholder="Find a rule"
          className="w-56 max-md:w-full"
          value={q}
          onValueChange={(text) => {
            void navigate({ search: compact({ section: "rules" as const, q: text || undefined }), replace: true });
          }}
        />
      </div>
      <LayerSection
        title="Organisation"
        hint="Applies to every session."
        action={
          <Link
            to="/policy"
            search={{ section: "edit" }}
            className={buttonStyle({ variant: canChange ? "primary" : "secondary" })}
          >
            {canChange ? "Edit" : "Test other rules"}
          </Link>
        }
      >
        {countRules(organisation) === 0 ? (
          <p className="text-muted">
            No rules{listHooks(organisation.hooks).length > 0 ? ", but hooks" : ""}. Add the first ones here, or with{" "}
            <code className="rounded-sm bg-code px-1 font-mono text-sm">footplate policy set --rules FILE</code>.
          </p>
        ) : (
          <Filtered permissions={organisation} text={q} label="Rules of the organisation" />
        )}
        <OrganisationFacts policy={policy.data} />
      </LayerSection>
      <LayerSection
        title="Projects"
        hint="Each applies to every session on the project, at its location."
        error={projects.error}
        isPartial={projects.data?.next_page != null}
      >
        <Owners list={owned} text={q} noun="project" isPending={projects.isPending} />
      </LayerSection>
      <LayerSection
        title="Agents"
        hint="Each applies to sessions of that version of the agent."
        error={agents.error}
        isPartial={agents.data?.next_page != null}
      >
        <Owners list={configured} text={q} noun="agent" isPending={agents.isPending} />
      </LayerSection>
      <LayerSection
        title="Sessions"
        hint="A session has rules of its own if it was started with some, or if a call was allowed in the session."
      >
        <p>
          <Link to="/policy" search={{ section: "explain" }} className="text-accent underline">
            Explain a call
          </Link>{" "}
          <span className="text-muted">with a session to see all rules that apply to it.</span>
        </p>
      </LayerSection>
    </div>
  );
}

interface LayerProps {
  title: string;
  hint: string;
  action?: ReactNode;
  error?: Error | null;
  /** Whether there are more than were loaded. */
  isPartial?: boolean;
  children: ReactNode;
}

function LayerSection({ title, hint, action, error = null, isPartial = false, children }: LayerProps) {
  return (
    <section aria-label={title} className="flex flex-col gap-3 border-t pt-4">
      <div className="flex items-start gap-3">
        <div className="min-w-0 flex-1">
          <h2 className="font-semibold">{title}</h2>
          <p className="text-sm text-muted">{hint}</p>
        </div>
        {action}
      </div>
      {error === null ? children : <ErrorPanel title="This layer could not be loaded" error={error} />}
      {isPartial && <p className="text-sm text-muted">Only the newest 100 are shown.</p>}
    </section>
  );
}

function Filtered({ permissions, text, label }: { permissions: Permissions; text: string; label: string }) {
  const shown = filterRules(permissions, text);
  return countRules(shown) === 0 ? (
    <p className="text-muted">No rule contains this text.</p>
  ) : (
    <RuleList permissions={shown} label={label} />
  );
}

interface Owner {
  id: string;
  name: string;
  permissions: Permissions;
  tools: ToolsetPolicy[];
}

function Owners({ list, text, noun, isPending }: { list: Owner[]; text: string; noun: string; isPending: boolean }) {
  if (isPending) {
    return <SkeletonRows count={2} />;
  }
  const withRules = list.filter(({ permissions, tools }) => summarizeRules(permissions) !== "" || tools.length > 0);
  const isFiltered = text.trim() !== "";
  const shown = isFiltered
    ? withRules.filter(({ permissions }) => countRules(filterRules(permissions, text)) > 0)
    : withRules;
  if (shown.length === 0) {
    return <p className="text-muted">{isFiltered ? "No rule contains this text." : `No ${noun} has rules.`}</p>;
  }
  return (
    <ul className="border-t">
      {shown.map(({ id, name, permissions, tools }) => (
        <li key={id} className="border-b">
          <details open={isFiltered || shown.length === 1} className="group">
            <summary className="flex min-h-9 flex-wrap items-center gap-x-2 py-1 hover:bg-hover max-md:min-h-11">
              <ChevronRight aria-hidden className="size-4 text-muted transition-transform group-open:rotate-90" />
              <SafeText className="min-w-0 flex-1 truncate font-medium">{name}</SafeText>
              <span className="text-sm text-muted">
                {[summarizeRules(permissions), ...(tools.length > 0 ? ["toolsets"] : [])].filter(Boolean).join(", ")}
              </span>
            </summary>
            <div className="flex flex-col gap-2 pt-1 pb-3 pl-6">
              {countRules(permissions) > 0 && (
                <RuleList permissions={filterRules(permissions, text)} label={`Rules of ${name}`} />
              )}
              {!isFiltered &&
                tools.map((one) => (
                  <p key={one.tools} className="grid grid-cols-[5rem_minmax(0,1fr)]">
                    <OutcomeMark outcome={one.outcome} of="rule" />
                    <SafeText>{one.tools}</SafeText>
                  </p>
                ))}
            </div>
          </details>
        </li>
      ))}
    </ul>
  );
}
