// The call to explain: from the form and from the address.
import type { ExplainedCall } from "@/api/queries/policy";

import type { PolicySearch } from "../search";

/** Tools with a main argument, by their names in rules. Others take their whole input as JSON. */
export const MAIN_ARGUMENTS: Readonly<Record<string, { field: string; label: string; example: string }>> = {
  Bash: { field: "command", label: "Command", example: "npm test && git push" },
  Read: { field: "file_path", label: "Path", example: "src/main.py" },
  Write: { field: "file_path", label: "Path", example: "src/main.py" },
  Edit: { field: "file_path", label: "Path", example: "src/main.py" },
  Glob: { field: "pattern", label: "Pattern", example: "**/*.py" },
  Grep: { field: "pattern", label: "Pattern", example: "password" },
  WebFetch: { field: "url", label: "Address", example: "https://example.com" },
  WebSearch: { field: "query", label: "Query", example: "python median" },
};

export const DEFAULT_TOOL = "Bash";

/** Whether the input of the call is written as JSON. */
export function takesJson(tool: string, text: string): boolean {
  return MAIN_ARGUMENTS[tool] === undefined || text.trimStart().startsWith('{"');
}

export interface CallProblem {
  field: "tool" | "call";
  message: string;
}

/** The call that the address describes, what is wrong with it, or null if it describes none. */
export function readCall(search: PolicySearch): ExplainedCall | CallProblem | null {
  const { tool = DEFAULT_TOOL, call, agent, project, session } = search;
  if (call === undefined || call.trim() === "") {
    return null;
  }
  const input = readInput(tool, call);
  if (input === null) {
    return { field: "call", message: 'Write the input as an object in JSON, such as {"path": "src"}.' };
  }
  return {
    tool,
    input,
    ...(session === undefined ? { agent_id: agent, project_id: project } : { session_id: session }),
  };
}

export function isProblem(found: ExplainedCall | CallProblem): found is CallProblem {
  return "message" in found;
}

function readInput(tool: string, call: string): Record<string, unknown> | null {
  const main = MAIN_ARGUMENTS[tool];
  if (main !== undefined && !takesJson(tool, call)) {
    return { [main.field]: call };
  }
  try {
    const found: unknown = JSON.parse(call);
    return typeof found === "object" && found !== null && !Array.isArray(found)
      ? (found as Record<string, unknown>)
      : null;
  } catch {
    // A command may begin like JSON, such as { "$x"; }.
    return main === undefined ? null : { [main.field]: call };
  }
}
