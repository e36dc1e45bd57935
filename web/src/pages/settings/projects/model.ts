// The values of the form of a project: from a project, checked, and as fields of a request.
import type { Project } from "@/api/queries/projects";
import { z } from "@/design/zod";

import { pickChanged } from "../work/changed-fields";

const LONGEST_LOCATION = 2048;
const LONGEST_SETUP = 16_384;
const MOST_DIRECTORIES = 32;

export const TRUST: Record<Project["trust"], { title: string; text: string }> = {
  nothing: { title: "Nothing", text: "No file of the project configures the agent." },
  instructions: { title: "Instructions", text: "Claude Code follows the project's texts, such as CLAUDE.md." },
  all: {
    title: "All",
    text: "Claude Code also uses the project's hooks and MCP servers, which run programs without asking.",
  },
};

export const projectSchema = z
  .object({
    kind: z.enum(["path", "url"]),
    location: z.string().trim().max(LONGEST_LOCATION, `Shorten it to ${LONGEST_LOCATION} characters.`),
    /** Empty for a new project: derived from its location. */
    name: z
      .string()
      .trim()
      .regex(/^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$/, "Use up to 64 letters, digits, dots, hyphens and underscores."),
    branch: z.string(),
    trust: z.enum(["nothing", "instructions", "all"]),
    setup: z.string().max(LONGEST_SETUP, `Shorten it to ${LONGEST_SETUP.toLocaleString("en-US")} characters.`),
    caches: z.enum(["default", "chosen", "none"]),
    /** One per line. */
    directories: z.string(),
    isNew: z.boolean(),
  })
  .superRefine((values, context) => {
    if (values.isNew && values.location === "") {
      const message =
        values.kind === "path" ? "Write the path of the repository." : "Write the address of the repository.";
      context.addIssue({ code: "custom", path: ["location"], message });
    }
    if (!values.isNew && values.name === "") {
      context.addIssue({ code: "custom", path: ["name"], message: "Give the project a name." });
    }
    const directories = splitLines(values.directories);
    if (values.caches === "chosen" && (directories.length === 0 || directories.length > MOST_DIRECTORIES)) {
      const message = `Write 1 to ${MOST_DIRECTORIES} directories, one per line.`;
      context.addIssue({ code: "custom", path: ["directories"], message });
    }
  });

export type ProjectValues = z.infer<typeof projectSchema>;

export const NEW_PROJECT: ProjectValues = {
  kind: "url",
  location: "",
  name: "",
  branch: "",
  trust: "nothing",
  setup: "",
  caches: "default",
  directories: "",
  isNew: true,
};

export function locationOf(project: Project): string {
  return project.url ?? project.path ?? "";
}

export function hasRules({ permissions }: Project): boolean {
  const { deny, ask, allow, hooks } = permissions;
  return deny.length + ask.length + allow.length > 0 || (hooks !== undefined && hooks !== null);
}

export function valuesOf(project: Project): ProjectValues {
  const directories = project.cached_directories;
  return {
    kind: project.url === null ? "path" : "url",
    location: locationOf(project),
    name: project.name,
    branch: project.branch ?? "",
    trust: project.trust,
    setup: project.setup ?? "",
    caches: directories === null ? "default" : directories.length === 0 ? "none" : "chosen",
    directories: (directories ?? []).join("\n"),
    isNew: false,
  };
}

function splitLines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** The fields of a request that creates the project, or those that the form changed. `project`: null for a new one. */
export function toFields(values: ProjectValues, project: Project | null): Record<string, unknown> {
  const after = allFields(values);
  if (project !== null) {
    return pickChanged(allFields(valuesOf(project)), after);
  }
  const set = Object.entries(after).filter(([, value]) => value !== null && value !== "");
  return { [values.kind]: values.location.trim(), ...Object.fromEntries(set) };
}

function allFields(values: ProjectValues): Record<string, unknown> {
  const directories = { default: null, none: [], chosen: splitLines(values.directories) };
  return {
    name: values.name.trim(),
    branch: values.branch.trim() || null,
    trust: values.trust,
    setup: values.setup.trim() === "" ? null : values.setup,
    cached_directories: directories[values.caches],
  };
}

const FIELDS: Record<string, keyof ProjectValues> = {
  path: "location",
  url: "location",
  name: "name",
  branch: "branch",
  trust: "trust",
  setup: "setup",
  cached_directories: "directories",
};

export function findField(field: string): keyof ProjectValues | null {
  return FIELDS[field.split(".", 1)[0] ?? ""] ?? null;
}
