// The draft of a session, and its translation into requests and from templates.
import type { SessionCreate } from "@/api/queries/sessions";

export interface Attachment {
  fileId: string;
  name: string;
  type: string;
  size: number;
}

export interface Draft {
  prompt: string;
  attachments: readonly Attachment[];
  title: string;
  /** Null: none. Empty: not chosen yet. */
  projectId: string | null;
  agentId: string | null;
  /** Null: the newest one. */
  agentVersion: number | null;
  environmentId: string | null;
  backend: string | null;
  attempts: number;
  /** The command that decides which attempt is kept. */
  check: string;
  mode: "interactive" | "background";
  visibility: "organisation" | "private";
  /** Empty, or a number as it was typed. */
  maxIterations: string;
  timeoutMinutes: string;
  /** Rules, one per line. */
  allow: string;
  ask: string;
  deny: string;
  /** Fields of a template that the form does not show. */
  others: Readonly<Record<string, unknown>>;
}

export const EMPTY_DRAFT: Draft = {
  prompt: "",
  attachments: [],
  title: "",
  projectId: "",
  agentId: null,
  agentVersion: null,
  environmentId: null,
  backend: null,
  attempts: 1,
  check: "",
  mode: "interactive",
  visibility: "organisation",
  maxIterations: "",
  timeoutMinutes: "",
  allow: "",
  ask: "",
  deny: "",
  others: {},
};

export const MOST_ATTEMPTS = 5;
const ATTEMPTS_KEY = "footplate.attempts";
const CHECK_KEY = "footplate.check";
const SECONDS_PER_MINUTE = 60;

type Limits = Record<string, unknown>;
/** What is known of the chosen agent: limits that the form does not change stay. */
export interface AgentDefaults {
  limits?: Limits | null;
}

export interface NewSession {
  session: SessionCreate;
  /** The step that starts the attempts, if there are several. */
  steps: readonly Record<string, unknown>[];
}

export function toContent(draft: Draft): Record<string, unknown>[] {
  return [
    ...(draft.prompt.trim() === "" ? [] : [{ type: "text", text: draft.prompt }]),
    ...draft.attachments.map(({ fileId, type }) => ({
      type: isImage(type) ? "image" : "file",
      source: { type: "file", file_id: fileId },
    })),
  ];
}

export function isImage(type: string): boolean {
  return ["image/png", "image/jpeg", "image/gif", "image/webp"].includes(type);
}

export function rulesOf(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

function chooseAgent(draft: Draft, agent: AgentDefaults): unknown {
  const limits: Limits = {
    ...(draft.maxIterations === "" ? {} : { max_iterations: Number(draft.maxIterations) }),
    ...(draft.timeoutMinutes === "" ? {} : { timeout_seconds: Number(draft.timeoutMinutes) * SECONDS_PER_MINUTE }),
  };
  const version = draft.agentVersion === null ? {} : { version: draft.agentVersion };
  if (Object.keys(limits).length > 0) {
    return { type: "agent_with_overrides", id: draft.agentId, ...version, limits: { ...agent.limits, ...limits } };
  }
  return draft.agentVersion === null ? draft.agentId : { type: "agent", id: draft.agentId, ...version };
}

/** The session without its task, as a template has it too. */
function toSession(draft: Draft, agent: AgentDefaults): Record<string, unknown> {
  const metadata = {
    ...(draft.others["metadata"] as object | undefined),
    ...(draft.attempts > 1 ? { [ATTEMPTS_KEY]: String(draft.attempts) } : {}),
    ...(draft.attempts > 1 && draft.check !== "" ? { [CHECK_KEY]: draft.check } : {}),
  };
  const rules = { deny: rulesOf(draft.deny), ask: rulesOf(draft.ask), allow: rulesOf(draft.allow) };
  const hasRules = Object.values(rules).some((list) => list.length > 0);
  const permissions = { ...(draft.others["permissions"] as object | undefined), ...(hasRules ? rules : {}) };
  return {
    ...draft.others,
    agent: chooseAgent(draft, agent),
    environment_id: draft.environmentId,
    ...(draft.backend === null ? {} : { backend: draft.backend }),
    ...(draft.title.trim() === "" ? {} : { title: draft.title.trim() }),
    ...(draft.projectId === null || draft.projectId === "" ? {} : { project_ids: [draft.projectId] }),
    ...(draft.mode === "interactive" ? {} : { mode: draft.mode }),
    ...(draft.visibility === "organisation" ? {} : { visibility: draft.visibility }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(Object.keys(permissions).length === 0 ? {} : { permissions }),
  };
}

export function toRequests(draft: Draft, agent: AgentDefaults = {}): NewSession {
  const title = draft.title.trim() === "" ? titleOf(draft.prompt) : draft.title.trim();
  const session = { ...toSession(draft, agent), title } as Record<string, unknown>;
  if (draft.attempts === 1) {
    session["initial_events"] = [{ type: "user.message", content: toContent(draft) }];
    return { session: session as unknown as SessionCreate, steps: [] };
  }
  const numbers = Array.from({ length: draft.attempts }, (_, index) => index + 1);
  const step = {
    kind: "parallel",
    name: "attempts",
    max_running: draft.attempts,
    branches: draft.check === "" ? "none" : "best",
    ...(draft.check === "" ? {} : { check: draft.check }),
    sessions: numbers.map((number) => ({
      title: `Attempt ${number}: ${title}`,
      steps: [{ kind: "prompt", content: toContent(draft) }],
    })),
  };
  return { session: session as unknown as SessionCreate, steps: [step] };
}

const LONGEST_TITLE = 80;

/** The first line of the task. */
export function titleOf(prompt: string): string {
  const line = prompt.trim().split("\n", 1)[0] ?? "";
  const characters = Array.from(line);
  return characters.length > LONGEST_TITLE ? `${characters.slice(0, LONGEST_TITLE - 1).join("")}…` : line;
}

/** What a template keeps: everything but the attachments, which belong to one task. */
export function toTemplate(draft: Draft, agent: AgentDefaults = {}): SessionCreate {
  const session = toSession(draft, agent);
  if (draft.prompt.trim() !== "") {
    session["initial_events"] = [{ type: "user.message", content: [{ type: "text", text: draft.prompt }] }];
  }
  return session as unknown as SessionCreate;
}

const SHOWN_FIELDS = new Set([
  "agent",
  "environment_id",
  "backend",
  "title",
  "project_ids",
  "mode",
  "visibility",
  "metadata",
  "permissions",
  "initial_events",
]);

export function fromTemplate(session: Readonly<Record<string, unknown>>): Draft {
  const agent = session["agent"] as string | { id?: string; version?: number; limits?: Limits } | undefined;
  const choice = typeof agent === "string" ? { id: agent } : (agent ?? {});
  const limits = "limits" in choice ? choice.limits : undefined;
  const {
    [ATTEMPTS_KEY]: attempts,
    [CHECK_KEY]: check,
    ...metadata
  } = (session["metadata"] ?? {}) as Record<string, string>;
  const { allow, ask, deny, ...hooks } = (session["permissions"] ?? {}) as Record<string, string[] | undefined>;
  const [project, ...moreProjects] = (session["project_ids"] ?? []) as string[];
  const timeout = limits?.["timeout_seconds"];
  return {
    ...EMPTY_DRAFT,
    prompt: textOf(session["initial_events"]),
    title: (session["title"] as string | undefined) ?? "",
    agentId: choice.id ?? null,
    agentVersion: "version" in choice ? (choice.version ?? null) : null,
    environmentId: (session["environment_id"] as string | undefined) ?? null,
    backend: (session["backend"] as string | undefined) ?? null,
    projectId: moreProjects.length > 0 ? null : (project ?? null),
    attempts: Math.min(Math.max(Number(attempts ?? 1) || 1, 1), MOST_ATTEMPTS),
    check: check ?? "",
    mode: session["mode"] === "background" ? "background" : "interactive",
    visibility: session["visibility"] === "private" ? "private" : "organisation",
    maxIterations: String((limits?.["max_iterations"] as number | undefined) ?? ""),
    timeoutMinutes: typeof timeout === "number" ? String(timeout / SECONDS_PER_MINUTE) : "",
    allow: (allow ?? []).join("\n"),
    ask: (ask ?? []).join("\n"),
    deny: (deny ?? []).join("\n"),
    others: {
      ...Object.fromEntries(Object.entries(session).filter(([name]) => !SHOWN_FIELDS.has(name))),
      ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
      ...(Object.keys(hooks).length === 0 ? {} : { permissions: hooks }),
      ...(moreProjects.length === 0 ? {} : { project_ids: [project, ...moreProjects] }),
      ...(session["visibility"] === "team" ? { visibility: "team" } : {}),
    },
  };
}

function textOf(events: unknown): string {
  const [first] = (events ?? []) as { content?: string | { type: string; text?: string }[] }[];
  const content = first?.content ?? [];
  return typeof content === "string" ? content : content.map((block) => block.text ?? "").join("\n");
}
