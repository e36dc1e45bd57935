// The versions as rows, and as a text for a report of a problem.
import type { Versions } from "@/api/queries/health";

export interface VersionRow {
  name: string;
  value: string;
}

export function listVersions(versions: Versions): VersionRow[] {
  const workers = versions.workers.map(({ version, workers: count }) => `${version ?? "older"} (${count})`).join(", ");
  return [
    { name: "Server", value: versions.footplate },
    { name: "Workers", value: workers || "none is running" },
    { name: "Schema", value: versions.schema_revision },
    { name: "Python", value: versions.python },
    { name: "PostgreSQL", value: versions.postgresql },
    { name: "Temporal", value: versions.temporal ?? "does not respond" },
  ];
}

export function describeVersions(versions: Versions): string {
  return listVersions(versions)
    .map(({ name, value }) => `${name}: ${value}`)
    .join("\n");
}
