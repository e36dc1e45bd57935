// The same session as a command, and as Python with Footplate's client.
import type { Draft } from "./draft";
import { isImage, rulesOf, type NewSession } from "./draft";

const PLAIN = /^[\w@%+=:,./-]+$/;

/** Quotes a word for a POSIX shell. */
export function quote(text: string): string {
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Whether `footplate run` has an option for all that the draft has. */
function hasOptions(draft: Draft): boolean {
  return (
    draft.agentVersion === null &&
    draft.timeoutMinutes === "" &&
    Object.keys(draft.others).length === 0 &&
    [draft.allow, draft.ask, draft.deny].every((rules) => rulesOf(rules).length === 0)
  );
}

function options(draft: Draft): string[] {
  return [
    ...(draft.agentId === null ? [] : ["--agent", draft.agentId]),
    ...(draft.environmentId === null ? [] : ["--environment", draft.environmentId]),
    ...(draft.backend === null ? [] : ["--backend", draft.backend]),
    ...(draft.projectId === null || draft.projectId === "" ? ["--scratch"] : ["--project", draft.projectId]),
    ...(draft.title.trim() === "" ? [] : ["--title", draft.title.trim()]),
    ...(draft.visibility === "organisation" ? [] : ["--visibility", draft.visibility]),
    ...(draft.maxIterations === "" ? [] : ["--max-turns", draft.maxIterations]),
  ];
}

export function toCommand(draft: Draft, { session, steps }: NewSession): string {
  const [step] = steps;
  if (step !== undefined && hasOptions(draft)) {
    const { kind: _kind, sessions, ...fields } = step;
    // JSON is YAML. Its lines are never the end mark, because a string has no line break in it.
    const file = JSON.stringify({ steps: [{ ...fields, parallel: sessions }] }, null, 2);
    return `${words(["footplate", "queue", "run", ...options(draft), "-"])} <<'END'\n${file}\nEND`;
  }
  if (step === undefined && hasOptions(draft)) {
    const files = draft.attachments.flatMap(({ fileId, type }) => [isImage(type) ? "--inline" : "--file", fileId]);
    const mode = draft.mode === "background" ? ["--background"] : [];
    return words(["footplate", "run", ...options(draft), ...files, ...mode, "--", draft.prompt]);
  }
  const create = curl('"$FOOTPLATE_BASE_URL/v1/sessions"', session);
  if (step === undefined) {
    return create;
  }
  const id = `python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])'`;
  return `session=$(${create} | ${id})\n${curl('"$FOOTPLATE_BASE_URL/v1/sessions/$session/steps"', { steps })}`;
}

function words(all: readonly string[]): string {
  return all.map(quote).join(" ");
}

function curl(url: string, body: unknown): string {
  return [
    `curl --fail-with-body -sS ${url}`,
    `-H "Authorization: Bearer $FOOTPLATE_API_KEY" -H 'Content-Type: application/json'`,
    `--data-raw ${quote(JSON.stringify(body))}`,
  ].join(" \\\n  ");
}

export function toPython({ session, steps }: NewSession): string {
  const fields = Object.entries(session).map(
    ([name, value]: [string, unknown]) => `            ${name}=${literal(value, 12)},`,
  );
  return [
    "import asyncio",
    "import os",
    "",
    "from footplate.client import AsyncFootplate",
    "",
    "",
    "async def main() -> None:",
    '    async with AsyncFootplate(os.environ["FOOTPLATE_BASE_URL"], os.environ["FOOTPLATE_API_KEY"]) as client:',
    "        session = await client.sessions.create(",
    ...fields,
    "        )",
    ...(steps.length === 0 ? [] : [`        await client.steps.add(session.id, ${literal(steps, 8)})`]),
    "        print(session.id)",
    "",
    "",
    "asyncio.run(main())",
    "",
  ].join("\n");
}

/** A Python literal. A string of JSON is one of Python too. */
function literal(value: unknown, indent: number): string {
  if (value === null) {
    return "None";
  }
  if (typeof value === "boolean") {
    return value ? "True" : "False";
  }
  if (typeof value !== "object") {
    return JSON.stringify(value);
  }
  const inner = " ".repeat(indent + 4);
  const entries = Array.isArray(value)
    ? value.map((one) => literal(one, indent + 4))
    : Object.entries(value)
        .filter(([, one]) => one !== undefined)
        .map(([name, one]) => `${JSON.stringify(name)}: ${literal(one, indent + 4)}`);
  const [start, end] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return entries.length === 0
    ? `${start}${end}`
    : `${start}\n${entries.map((entry) => `${inner}${entry},\n`).join("")}${" ".repeat(indent)}${end}`;
}
