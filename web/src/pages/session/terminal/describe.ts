// Says in one sentence how the terminal is, why no shell is open, and what its reader can do.
import type { Step } from "../steps/model";
import type { LinkStatus } from "./link";
import type { TerminalMode } from "./use-terminal";

export interface TerminalState {
  tone: "open" | "waiting" | "closed" | "problem";
  title: string;
  detail: string;
}

interface Facts {
  mode: TerminalMode;
  status: LinkStatus | null;
  /** The shell that is queued or open, as a step. */
  step: Step | undefined;
  /** The command that runs on the terminal. */
  command: Step | undefined;
  hasRunningTurn: boolean;
  /** Why the caller cannot type. */
  refusal: string | null;
}

export function describeTerminal({ mode, status, step, command, hasRunningTurn, refusal }: Facts): TerminalState {
  if (mode === "detached") {
    const isOpen = step?.state === "running" || command !== undefined;
    return {
      tone: "closed",
      title: "Detached",
      detail: isOpen ? "The shell stays open." : "No shell is open.",
    };
  }
  if (status?.state === "refused") {
    return { tone: "problem", title: "The terminal cannot be shown", detail: status.refusal ?? "" };
  }
  if (status?.state === "lost") {
    return {
      tone: "problem",
      title: "Connection lost",
      detail:
        status.kept > 0
          ? `Connecting again. ${status.kept} characters that you typed are kept and sent then.`
          : "Connecting again. What you type now is kept for a short time and sent then.",
    };
  }
  if (status === null || status.state === "connecting") {
    return { tone: "waiting", title: "Connecting", detail: "" };
  }
  if (status.programId !== null) {
    const what = command !== undefined ? "A command runs here" : "The shell is open";
    return status.canType
      ? { tone: "open", title: what, detail: "You can type. Ctrl+] leaves the terminal." }
      : { tone: "open", title: what, detail: refusal ?? "You are watching: keys have no effect." };
  }
  if (step?.state === "pending") {
    return {
      tone: "waiting",
      title: "The shell opens soon",
      detail: hasRunningTurn ? "It opens when the current turn has ended." : "A worker is about to open it.",
    };
  }
  if (step?.state === "running") {
    return { tone: "waiting", title: "The shell opens", detail: "The worker prepares the sandbox." };
  }
  return {
    tone: "closed",
    title: status.closedReason === null ? "No shell is open" : "The shell was closed",
    detail: refusal ?? closedDetail(status.closedReason),
  };
}

function closedDetail(reason: string | null): string {
  return reason === null || reason === ""
    ? "Open one to work in the session's files, with its limits and network rules. The queue waits meanwhile."
    : reason;
}
