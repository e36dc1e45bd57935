// The output of a call as text, and the line of it that says most.
import { saveFile } from "@/design/save-file";

import { objectField, textField, textOf } from "../log/events";
import type { ToolCall } from "../log/tool-calls";

export function outputOf(call: ToolCall): string {
  return call.result === null ? "" : textOf(call.result);
}

/** Why a call failed, in one line. */
export function excerpt(call: ToolCall): string {
  const lines = outputOf(call)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !/^[-=_~*]{3,}$/.test(line));
  const last = lines.at(-1) ?? textField(objectField(call.result, "command"), "error") ?? "";
  const before = lines.at(-2);
  return (/^\[exit code \d+\]$/.test(last) && before !== undefined ? `${before} ${last}` : last).slice(0, 300);
}

export function downloadText(name: string, text: string, type = "text/plain"): void {
  saveFile(name, new Blob([text], { type: `${type};charset=utf-8` }));
}
