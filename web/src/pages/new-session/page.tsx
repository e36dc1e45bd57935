// New session: one field for the task, and sensible choices beneath it.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { ChevronDown, ChevronRight } from "lucide-react";
import { useEffect, useEffectEvent, useState } from "react";

import { useActions } from "@/actions/use-actions";
import { displayShortcut } from "@/actions/shortcuts";
import { meQuery } from "@/api/queries/me";
import { agentsQuery, environmentsQuery, projectsQuery, templatesQuery } from "@/api/queries/new-session";
import { cn } from "@/design/classes";
import { Button } from "@/design/components/button";
import { copyText } from "@/design/components/copy";
import { ErrorPanel } from "@/design/components/error-panel";
import { Menu, MenuContent, MenuItem, MenuTrigger } from "@/design/components/menu";
import { SkeletonRows } from "@/design/components/skeleton";
import { showToast } from "@/design/components/toast";
import { usePageTitle } from "@/frame/page-title";

import { useAttachments } from "./attachments";
import { MainChoices, MoreOptions } from "./choices";
import { toCommand, toPython } from "./commands";
import { type Draft, EMPTY_DRAFT, fromTemplate, MOST_ATTEMPTS, titleOf, toRequests, toTemplate } from "./draft";
import { changeDraft, clearTask, getDraft, useDraft } from "./draft-store";
import { type FieldErrors, MORE_FIELDS, toFieldErrors } from "./errors";
import { FirstAgent } from "./first-agent";
import { startSession } from "./start";
import { TaskField } from "./task-field";
import { TemplateMenu } from "./template-menu";

const route = getRouteApi("/frame/new");

export default function NewSessionPage() {
  usePageTitle("New session");
  const { data: me } = useQuery(meQuery);
  const agents = useQuery(agentsQuery);
  const projects = useQuery(projectsQuery);
  const environments = useQuery(environmentsQuery);
  const failed = [agents, projects, environments].find((query) => query.error !== null && query.data === undefined);
  if (failed !== undefined) {
    return (
      <ErrorPanel
        className="m-4"
        title="The choices for a session could not be loaded"
        error={failed.error}
        onRetry={() => void failed.refetch()}
      />
    );
  }
  if (me === undefined || agents.data === undefined || projects.data === undefined || environments.data === undefined) {
    return <SkeletonRows count={5} />;
  }
  const canOperate = me.permissions.includes("operate");
  if (agents.data.data.length === 0) {
    return (
      <FirstAgent
        canOperate={canOperate}
        onCreated={(agentId) => {
          changeDraft({ agentId });
        }}
      />
    );
  }
  return (
    <Form
      owner={me.id}
      canOperate={canOperate}
      agents={agents.data.data}
      projects={projects.data.data}
      environments={environments.data.data}
    />
  );
}

type Choices = Pick<Parameters<typeof MainChoices>[0], "agents" | "projects"> &
  Pick<Parameters<typeof MoreOptions>[0], "environments">;

/** The draft with choices that exist: what is gone, or was never chosen, becomes the newest one. */
function complete(draft: Draft, { agents, projects, environments }: Choices): Draft {
  const has = (list: readonly { id: string }[], id: string | null) => list.some((one) => one.id === id);
  return {
    ...draft,
    agentId: has(agents, draft.agentId) ? draft.agentId : (agents[0]?.id ?? null),
    agentVersion: has(agents, draft.agentId) ? draft.agentVersion : null,
    projectId: has(projects, draft.projectId)
      ? draft.projectId
      : draft.projectId === ""
        ? (projects[0]?.id ?? null)
        : null,
    environmentId: has(environments, draft.environmentId) ? draft.environmentId : (environments[0]?.id ?? null),
  };
}

function Form({ owner, canOperate, ...choices }: Choices & { owner: string; canOperate: boolean }) {
  const stored = useDraft(owner);
  const draft = complete(stored, choices);
  const navigate = useNavigate();
  const attachments = useAttachments();
  const [isStarting, setStarting] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [isMoreOpen, setMoreOpen] = useState(false);
  useFillFromAddress(choices);

  const agent = choices.agents.find((one) => one.id === draft.agentId) ?? {};
  const errors: FieldErrors = {
    ...toFieldErrors(error),
    ...(draft.attempts > 1 && draft.prompt.includes("${steps.")
      ? { prompt: "`${steps.` refers to the result of an earlier step, of which several attempts have none." }
      : {}),
  };
  const isEmpty = draft.prompt.trim() === "" && draft.attachments.length === 0;
  const isReady = canOperate && !isEmpty && !isStarting && !attachments.isUploading;

  function change(part: Partial<Draft>): void {
    setError(null);
    changeDraft(part);
  }
  async function start(): Promise<void> {
    if (!isReady) {
      return;
    }
    setStarting(true);
    setError(null);
    try {
      const { sessionId, attempts } = await startSession(draft, agent);
      // What was chosen for this session is suggested for the next one.
      changeDraft({ agentId: draft.agentId, projectId: draft.projectId, environmentId: draft.environmentId });
      clearTask();
      await (attempts > 1
        ? navigate({ to: "/sessions/$sessionId", params: { sessionId }, search: { tab: "children" } })
        : navigate({ to: "/sessions/$sessionId", params: { sessionId } }));
    } catch (problem) {
      setError(problem);
      if (MORE_FIELDS.some((name) => toFieldErrors(problem)[name] !== undefined)) {
        setMoreOpen(true);
      }
    } finally {
      setStarting(false);
    }
  }
  async function copy(as: "command" | "python"): Promise<void> {
    const requests = toRequests(draft, agent);
    if (await copyText(as === "command" ? toCommand(draft, requests) : toPython(requests))) {
      showToast({ title: as === "command" ? "Command copied" : "Python copied" });
    }
  }
  function clear(): void {
    const before = getDraft();
    change(EMPTY_DRAFT);
    showToast({
      title: "Draft cleared",
      action: {
        label: "Undo",
        onClick: () => {
          changeDraft(before);
        },
      },
    });
  }
  useActions({
    ...(canOperate ? { "new.start": () => void start() } : {}),
    "new.copy-command": () => void copy("command"),
    "new.copy-python": () => void copy("python"),
    "new.more": () => {
      setMoreOpen(!isMoreOpen);
    },
    "new.clear": clear,
  });

  const shared = { draft, errors, isDisabled: !canOperate, onChange: change };
  const isShownAtField = Object.keys(toFieldErrors(error)).length > 0;
  return (
    <form
      className="mx-auto flex w-full max-w-3xl flex-col gap-4 p-6 max-md:p-4"
      onSubmit={(event) => {
        // Enter in a field must not start the session; the button and its shortcut do.
        event.preventDefault();
      }}
    >
      {!canOperate && (
        <p role="status" className="rounded-md bg-waiting-soft px-3 py-2 text-waiting">
          Your role does not permit to start sessions. Ask an administrator for the role operator or member.
        </p>
      )}
      <TaskField
        prompt={draft.prompt}
        attached={draft.attachments}
        attachments={attachments}
        error={errors.prompt}
        isDisabled={!canOperate}
        onChange={(prompt) => {
          change({ prompt });
        }}
      />
      <MainChoices {...shared} agents={choices.agents} projects={choices.projects} />
      {isMoreOpen && <MoreOptions {...shared} environments={choices.environments} />}
      {error !== null && !isShownAtField && <ErrorPanel title="The session was not started" error={error} />}
      {error !== null && isShownAtField && (
        <p role="status" className="text-sm text-failed">
          The session was not started. Correct the marked field.
        </p>
      )}
      <div className="flex flex-wrap items-center gap-2">
        <Button
          variant="quiet"
          aria-expanded={isMoreOpen}
          className="-ml-2 max-md:h-11"
          onClick={() => {
            setMoreOpen(!isMoreOpen);
          }}
        >
          <ChevronRight aria-hidden className={cn("transition-transform", isMoreOpen && "rotate-90")} />
          More options
        </Button>
        <TemplateMenu
          isDisabled={!canOperate}
          suggestedName={draft.title.trim() === "" ? titleOf(draft.prompt) : draft.title.trim()}
          build={() => toTemplate(draft, agent)}
          onUse={(template) => {
            change(fromTemplate(template.session));
            showToast({ title: "Template used", description: template.name, timeout: 2_500 });
          }}
        />
        <Menu>
          <MenuTrigger render={<Button variant="quiet" className="max-md:h-11" />}>
            Copy as
            <ChevronDown aria-hidden />
          </MenuTrigger>
          <MenuContent>
            <MenuItem onClick={() => void copy("command")}>Command</MenuItem>
            <MenuItem onClick={() => void copy("python")}>Python</MenuItem>
          </MenuContent>
        </Menu>
        <Button
          variant="primary"
          className="ml-auto max-md:h-11 max-md:w-full"
          disabled={!isReady}
          onClick={() => void start()}
          shortcut={displayShortcut("mod+enter").join(" ")}
        >
          {isStarting ? "Starting …" : draft.attempts === 1 ? "Start session" : `Start ${draft.attempts} attempts`}
        </Button>
      </div>
    </form>
  );
}

/** A link to this page can fill in the form, such as "again with this agent". */
function useFillFromAddress(choices: Choices): void {
  const search = route.useSearch();
  const { data: templates } = useQuery({ ...templatesQuery, enabled: search.template_id !== undefined });
  const navigate = useNavigate();
  const fill = useEffectEvent(() => {
    const { template_id, agent_id, project_id, attempts, prompt } = search;
    if (Object.keys(search).length === 0 || (template_id !== undefined && templates === undefined)) {
      return;
    }
    const template = templates?.data.find((one) => one.id === template_id);
    changeDraft({
      ...(template === undefined ? {} : fromTemplate(template.session)),
      ...(agent_id === undefined ? {} : { agentId: agent_id, agentVersion: null }),
      ...(choices.projects.some((project) => project.id === project_id) ? { projectId: project_id ?? null } : {}),
      ...(attempts === undefined ? {} : { attempts: Math.min(Math.max(Math.floor(attempts), 1), MOST_ATTEMPTS) }),
      ...(prompt === undefined ? {} : { prompt }),
    });
    // From now on, the draft counts, so a reload does not overwrite it.
    void navigate({ to: "/new", search: {}, replace: true });
  });
  useEffect(() => {
    fill();
  }, [search, templates]);
}
