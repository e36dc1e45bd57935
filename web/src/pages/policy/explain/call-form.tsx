// The call to explain, and whose rules apply to it: those of a session, or of a new one.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";

import { displayShortcut } from "@/actions/shortcuts";
import { useAction } from "@/actions/use-actions";
import { request } from "@/api/client";
import type { Listing } from "@/api/contract";
import { keys } from "@/api/keys";
import { agentsQuery, projectsQuery } from "@/api/queries/new-session";
import { sessionQuery } from "@/api/queries/sessions";
import type { Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { Field } from "@/design/components/field";
import { Input, Textarea } from "@/design/components/input";
import { Select, type SelectOption } from "@/design/components/select";
import { compact } from "@/frame/search";

import { type CallProblem, DEFAULT_TOOL, MAIN_ARGUMENTS } from "./model";

const route = getRouteApi("/frame/policy");
const OTHER = "other";
const SHOWN_SESSIONS = 100;
const TOOLS: SelectOption<string>[] = [
  ...Object.keys(MAIN_ARGUMENTS).map((name) => ({ value: name, label: name })),
  { value: OTHER, label: "Another tool" },
];

export function CallForm({ problem }: { problem: CallProblem | null }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [tool, setTool] = useState(search.tool ?? DEFAULT_TOOL);
  const [call, setCall] = useState(search.call ?? "");
  const main = MAIN_ARGUMENTS[tool];
  const canExplain = call.trim() !== "" && tool.trim() !== "";

  function explain(): void {
    if (canExplain) {
      void navigate({
        search: compact({ ...search, tool: tool === DEFAULT_TOOL ? undefined : tool.trim(), call }),
      });
    }
  }
  useAction("policy.explain-call", explain, { isEnabled: canExplain });
  return (
    <form
      aria-label="Call"
      className="flex flex-col gap-4"
      onSubmit={(event) => {
        event.preventDefault();
        explain();
      }}
    >
      <div className="grid grid-cols-[12rem_minmax(0,1fr)] items-start gap-4 max-md:grid-cols-1">
        <div className="flex flex-col gap-4">
          <Field label="Tool">
            {({ id }) => (
              <Select
                id={id}
                className="w-full"
                options={TOOLS}
                value={main === undefined ? OTHER : tool}
                onChange={(next) => {
                  setTool(next === OTHER ? "" : (next ?? DEFAULT_TOOL));
                }}
              />
            )}
          </Field>
          {main === undefined && (
            <Field label="Name of the tool">
              {(field) => (
                <Input {...field} value={tool} placeholder="mcp__github__create_issue" onValueChange={setTool} />
              )}
            </Field>
          )}
        </div>
        <Field label={main?.label ?? "Input as JSON"} error={problem?.message}>
          {(field) => (
            <Textarea
              {...field}
              spellCheck={false}
              rows={2}
              className="field-sizing-content max-h-72 min-h-16 font-mono text-sm"
              placeholder={main?.example ?? '{"title": "Median"}'}
              value={call}
              onChange={(event) => {
                setCall(event.target.value);
              }}
            />
          )}
        </Field>
      </div>
      <div className="flex flex-wrap items-end gap-4">
        <Context />
        <Button
          type="submit"
          variant="primary"
          className="ml-auto max-md:h-11 max-md:w-full"
          disabled={!canExplain}
          shortcut={displayShortcut("mod+enter").join(" ")}
        >
          Explain
        </Button>
      </div>
    </form>
  );
}

/** Whose rules apply. A change is in the address at once, and is explained at once. */
function Context(): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const agents = useQuery(agentsQuery);
  const projects = useQuery(projectsQuery);
  const sessions = useQuery({
    queryKey: [...keys.sessions, "newest"],
    queryFn: ({ signal }) =>
      request<Listing<Session>>("GET", "/v1/sessions", { query: { limit: SHOWN_SESSIONS }, signal }),
  });
  const isListed = sessions.data?.data.some((one) => one.id === search.session) ?? false;
  const { data: session } = useQuery({
    ...sessionQuery(search.session ?? ""),
    enabled: search.session !== undefined && !isListed,
    retry: false,
  });
  const listed = [...(session === undefined ? [] : [session]), ...(sessions.data?.data ?? [])].map((one) => ({
    value: one.id,
    label: one.title ?? "Untitled session",
  }));
  function change(next: { agent?: string | null; project?: string | null; session?: string | null }): void {
    const { agent = search.agent, project = search.project, session: chosen = search.session } = next;
    void navigate({
      search: compact({
        ...search,
        agent: agent ?? undefined,
        project: project ?? undefined,
        session: chosen ?? undefined,
      }),
      replace: true,
    });
  }
  const isNew = search.session === undefined;
  return (
    <>
      <Choice
        label="Rules of"
        options={withCurrent(listed, search.session)}
        value={search.session}
        clearLabel="A new session"
        onChange={(value) => {
          change(value === null ? { session: null } : { session: value, agent: null, project: null });
        }}
      />
      {isNew && (
        <>
          <Choice
            label="Agent"
            options={withCurrent(named(agents.data?.data), search.agent)}
            value={search.agent}
            clearLabel="No agent"
            onChange={(value) => {
              change({ agent: value });
            }}
          />
          <Choice
            label="Project"
            options={withCurrent(named(projects.data?.data), search.project)}
            value={search.project}
            clearLabel="No project"
            onChange={(value) => {
              change({ project: value });
            }}
          />
        </>
      )}
    </>
  );
}

interface ChoiceProps {
  label: string;
  options: SelectOption<string>[];
  value: string | undefined;
  clearLabel: string;
  onChange: (value: string | null) => void;
}

function Choice({ label, options, value, clearLabel, onChange }: ChoiceProps) {
  return (
    <div className="w-52 max-md:w-full">
      <Field label={label}>
        {({ id }) => (
          <Select
            id={id}
            className="w-full"
            options={options}
            value={value ?? null}
            clearLabel={clearLabel}
            onChange={onChange}
          />
        )}
      </Field>
    </div>
  );
}

function named(list: readonly { id: string; name: string }[] | undefined): SelectOption<string>[] {
  return (list ?? []).map(({ id, name }) => ({ value: id, label: name }));
}

/** The choice of the address is offered even if it is not in the list, for example because it is archived. */
function withCurrent(options: SelectOption<string>[], current: string | undefined): SelectOption<string>[] {
  const isListed = current === undefined || options.some(({ value }) => value === current);
  return isListed ? options : [{ value: current, label: current }, ...options];
}
