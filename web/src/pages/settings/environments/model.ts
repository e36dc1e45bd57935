// The values of the form of an environment: from an environment, checked, and as fields of a request.
import type { Environment } from "@/api/queries/environments";
import { z } from "@/design/zod";

import { pickChanged } from "../work/changed-fields";

const LONGEST_NAME = 256;
const LONGEST_DESCRIPTION = 2048;
const LONGEST_SETUP = 65_536;
export const PACKAGE_MANAGERS = ["apt", "cargo", "gem", "go", "npm", "pip"] as const;
type PackageManager = (typeof PACKAGE_MANAGERS)[number];

/** The configuration, as far as this page knows it. */
export interface EnvironmentConfig {
  backend: string;
  image: string;
  setup: string;
  isLimited: boolean;
  hosts: readonly string[];
  allowsMcpServers: boolean;
  packages: Record<PackageManager, readonly string[]>;
}

export const environmentSchema = z.object({
  name: z
    .string()
    .trim()
    .min(1, "Give the environment a name.")
    .max(LONGEST_NAME, `Shorten it to ${LONGEST_NAME} characters.`),
  description: z.string().max(LONGEST_DESCRIPTION, `Shorten it to ${LONGEST_DESCRIPTION} characters.`),
  /** Empty: the server's default. */
  backend: z.string(),
  image: z.string().trim().max(LONGEST_NAME, `Shorten it to ${LONGEST_NAME} characters.`),
  setup: z.string().max(LONGEST_SETUP, `Shorten it to ${LONGEST_SETUP.toLocaleString("en-US")} characters.`),
  network: z.enum(["unrestricted", "limited"]),
  /** One per line. */
  hosts: z.string(),
  allowsMcpServers: z.boolean(),
  /** Names with spaces between them, by package manager. */
  packages: z.object(
    Object.fromEntries(PACKAGE_MANAGERS.map((name) => [name, z.string()])) as Record<PackageManager, z.ZodString>,
  ),
});

export type EnvironmentValues = z.infer<typeof environmentSchema>;

type Fields = Record<string, unknown>;

function asObject(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function asTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function readConfig({ config }: Pick<Environment, "config">): EnvironmentConfig {
  const [networking, packages] = [asObject(config["networking"]), asObject(config["packages"])];
  return {
    backend: asText(config["backend"]),
    image: asText(config["image"]),
    setup: asText(config["setup"]),
    isLimited: networking["type"] === "limited",
    hosts: asTexts(networking["allowed_hosts"]),
    allowsMcpServers: networking["allow_mcp_servers"] === true,
    packages: Object.fromEntries(PACKAGE_MANAGERS.map((name) => [name, asTexts(packages[name])])) as Record<
      PackageManager,
      string[]
    >,
  };
}

/** `no network`, `only 2 hosts`, `as the server allows`. */
export function describeNetwork({ isLimited, hosts, allowsMcpServers }: EnvironmentConfig): string {
  if (!isLimited) {
    return "as the server allows";
  }
  const reach =
    hosts.length === 0 ? "no network" : hosts.length === 1 ? `only ${hosts[0]}` : `only ${hosts.length} hosts`;
  return allowsMcpServers ? `${reach}, and MCP servers` : reach;
}

const NO_PACKAGES = Object.fromEntries(PACKAGE_MANAGERS.map((name) => [name, ""])) as Record<PackageManager, string>;

export const NEW_ENVIRONMENT: EnvironmentValues = {
  name: "",
  description: "",
  backend: "",
  image: "",
  setup: "",
  network: "unrestricted",
  hosts: "",
  allowsMcpServers: false,
  packages: NO_PACKAGES,
};

export function valuesOf(environment: Environment): EnvironmentValues {
  const config = readConfig(environment);
  return {
    name: environment.name,
    description: environment.description ?? "",
    backend: config.backend,
    image: config.image,
    setup: config.setup,
    network: config.isLimited ? "limited" : "unrestricted",
    hosts: config.hosts.join("\n"),
    allowsMcpServers: config.allowsMcpServers,
    packages: Object.fromEntries(PACKAGE_MANAGERS.map((name) => [name, config.packages[name].join(" ")])) as Record<
      PackageManager,
      string
    >,
  };
}

function splitNames(text: string): string[] {
  return text.split(/\s+/).filter((name) => name !== "");
}

/**
 * The fields of a request that creates the environment, or those that the form changed. `environment`: null for a new
 * one. The server keeps each part of the configuration that is not sent.
 */
export function toFields(values: EnvironmentValues, environment: Environment | null): Fields {
  const before = environment === null ? null : valuesOf(environment);
  const own = pickChanged(before === null ? { description: null } : ownFields(before), ownFields(values));
  const config = pickChanged(configFields(before ?? NEW_ENVIRONMENT), configFields(values));
  const hasConfig = environment === null || Object.keys(config).length > 0;
  return { ...own, ...(hasConfig ? { config: { type: "cloud", ...config } } : {}) };
}

function ownFields(values: EnvironmentValues): Fields {
  return { name: values.name.trim(), description: values.description.trim() || null };
}

function configFields(values: EnvironmentValues): Fields {
  return {
    backend: values.backend,
    image: values.image.trim(),
    setup: values.setup.trim() === "" ? "" : values.setup,
    networking:
      values.network === "limited"
        ? { type: "limited", allowed_hosts: splitNames(values.hosts), allow_mcp_servers: values.allowsMcpServers }
        : { type: "unrestricted" },
    packages: {
      type: "packages",
      ...Object.fromEntries(PACKAGE_MANAGERS.map((name) => [name, splitNames(values.packages[name])])),
    },
  };
}

type FieldPath = keyof Omit<EnvironmentValues, "packages"> | `packages.${PackageManager}`;

const FIELDS: readonly [RegExp, FieldPath][] = [
  [/^name/, "name"],
  [/^description/, "description"],
  [/^config\.backend/, "backend"],
  [/^config\.image/, "image"],
  [/^config\.setup/, "setup"],
  [/^config\.networking\.allowed_hosts/, "hosts"],
  [/^config\.networking/, "network"],
];

/** The field of the form for the server's name of a field. The server may name the kind of the configuration too. */
export function findField(field: string): FieldPath | null {
  const path = field.replace(/^config\.cloud\./, "config.");
  const manager = /^config\.packages\.(\w+)/.exec(path)?.[1];
  const known = PACKAGE_MANAGERS.find((name) => name === manager);
  return known === undefined
    ? (FIELDS.find(([pattern]) => pattern.test(path))?.[1] ?? null)
    : (`packages.${known}` as const);
}
