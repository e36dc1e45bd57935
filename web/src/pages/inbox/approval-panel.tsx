// A call that waits for approval: what will run, why it asks, and the decision.
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";

import { useActions } from "@/actions/use-actions";
import { api, required } from "@/api/client";
import type { InboxItem } from "@/api/contract";
import { keys } from "@/api/keys";
import { Button } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { Textarea } from "@/design/components/input";
import { Time } from "@/design/components/time";
import { MessageText, SafeText } from "@/design/text/text";
import type { Decisions } from "./decisions";
import { countHidden, describeLayer, isWhole, readPermission, suggestRule } from "./describe";
import { Footer } from "./footer";
import { ToolCall } from "./tool-call";

type Approval = NonNullable<InboxItem["approval"]>;

/** A decision counts only after the call was on the screen for this long: the next key of a fast sequence must not
 * decide an item that nobody has seen. */
const SEEN_MS = 300;

interface Props {
  item: InboxItem;
  approval: Approval;
  canDecide: boolean;
  decisions: Decisions;
  /** Changes that the session has made so far, and other facts. */
  children?: ReactNode;
}

export function ApprovalPanel({ item, approval: listed, canDecide, decisions, children }: Props) {
  const [mode, setMode] = useState<"read" | "edit" | "deny">("read");
  const needsWhole = !isWhole(listed);
  const whole = useQuery({
    queryKey: [...keys.inbox, "approval", listed.id],
    queryFn: async ({ signal }) =>
      required(await api.GET("/v1/approvals/{approval_id}", { params: { path: { approval_id: listed.id } }, signal })),
    enabled: needsWhole,
  });
  const approval = whole.data ?? listed;
  const isComplete = approval.input !== null && (!needsWhole || whole.data !== undefined);
  const input = approval.edited_input ?? approval.input ?? {};
  const rule = suggestRule(approval);
  const shownAt = useRef(0);
  useEffect(() => {
    shownAt.current = performance.now();
  }, [isComplete]);

  function decide(decision: Parameters<Decisions["confirm"]>[1]): void {
    if (performance.now() - shownAt.current >= SEEN_MS) {
      void decisions.confirm(item, decision);
    }
  }
  const allow = (): void => {
    decide({ result: "allow" });
  };
  const allowInSession = (): void => {
    if (rule !== null) {
      decide({ result: "allow", session_rule: rule });
    }
  };
  const edit = (): void => {
    setMode("edit");
  };
  const deny = (): void => {
    setMode("deny");
  };
  const canAllow = canDecide && isComplete;
  useActions({
    ...(canAllow ? { "inbox.allow": allow, "inbox.edit": edit } : {}),
    ...(canAllow && rule !== null ? { "inbox.allow-in-session": allowInSession } : {}),
    ...(canDecide ? { "inbox.deny": deny } : {}),
  });

  return (
    <>
      <div className="flex flex-col gap-4">
        {approval.agent_name !== null && (
          <p>
            Subagent <SafeText className="font-medium">{approval.agent_name}</SafeText> asks.
          </p>
        )}
        {mode === "edit" ? (
          <EditForm
            input={input}
            onCancel={() => {
              setMode("read");
            }}
            onAllow={(updated) => {
              void decisions.confirm(item, { result: "allow", updated_input: updated });
            }}
          />
        ) : (
          <ToolCall name={approval.name ?? "tool"} input={input} />
        )}
        {approval.edited_by !== null && (
          <p className="text-waiting">A person edited this call. Another one has to approve it.</p>
        )}
        {!isComplete && whole.error === null && (
          <p role="status" className="text-muted">
            Loading the whole call. You can allow it when all of it is here.
          </p>
        )}
        {whole.error !== null && (
          <ErrorPanel
            title="The whole call could not be loaded, so it cannot be allowed"
            error={whole.error}
            onRetry={() => void whole.refetch()}
          />
        )}
        <Reason approval={approval} />
        {children}
      </div>
      {mode === "deny" && (
        <Footer>
          <DenyForm
            onCancel={() => {
              setMode("read");
            }}
            onDeny={(text) => {
              void decisions.confirm(item, { result: "deny", ...(text === "" ? {} : { deny_message: text }) });
            }}
          />
        </Footer>
      )}
      {mode === "read" && (
        <Footer hint={canDecide ? null : "You can see this call. Your role does not permit to decide it."}>
          <Button variant="primary" shortcut="a" disabled={!canAllow} onClick={allow}>
            Allow
          </Button>
          {rule !== null && (
            <Button
              shortcut="s"
              disabled={!canAllow}
              onClick={allowInSession}
              title={`Adds the rule ${rule} to this session`}
            >
              Allow in session
            </Button>
          )}
          <Button shortcut="e" disabled={!canAllow} onClick={edit}>
            Edit
          </Button>
          <Button variant="danger" shortcut="d" disabled={!canDecide} onClick={deny}>
            Deny …
          </Button>
        </Footer>
      )}
    </>
  );
}

function Reason({ approval }: { approval: Approval }) {
  const { rule, hook, layer, reason } = readPermission(approval);
  const sessionRule = suggestRule(approval);
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 max-md:grid-cols-1 max-md:gap-y-0">
      <dt className="text-muted">Asks because</dt>
      <dd className="min-w-0 break-words">
        {rule !== null && (
          <>
            the rule <SafeText className="rounded-sm bg-code px-1 font-mono text-sm">{rule}</SafeText>
            {layer !== null && ` ${describeLayer(layer)}`} requires approval
          </>
        )}
        {rule === null && hook !== null && (
          <>
            the hook <SafeText className="font-mono text-sm">{hook}</SafeText> requires approval
          </>
        )}
        {rule === null && hook === null && "no rule covers this call"}
        {reason !== null && (
          <span className="block text-sm text-muted">
            <MessageText>{reason}</MessageText>
          </span>
        )}
      </dd>
      {sessionRule !== null && (
        <>
          <dt className="text-muted">Allow in session</dt>
          <dd className="min-w-0 break-words">
            allows <SafeText className="rounded-sm bg-code px-1 font-mono text-sm">{sessionRule}</SafeText> until the
            session ends
          </dd>
        </>
      )}
      {rule !== null && sessionRule === null && (
        <>
          <dt className="text-muted">Next time</dt>
          <dd>it asks again, because this rule requires approval for each such call</dd>
        </>
      )}
      {approval.expires_at !== null && (
        <>
          <dt className="text-muted">Expires</dt>
          <dd>
            <Time value={approval.expires_at} className="text-waiting" />
          </dd>
        </>
      )}
    </dl>
  );
}

function DenyForm({ onCancel, onDeny }: { onCancel: () => void; onDeny: (message: string) => void }) {
  const [text, setText] = useState("");
  return (
    <form
      className="flex w-full flex-col gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        onDeny(text.trim());
      }}
    >
      <label htmlFor="deny-message" className="text-sm font-medium">
        What should the agent do instead?
      </label>
      <Textarea
        id="deny-message"
        // oxlint-disable-next-line jsx-a11y/no-autofocus -- the person has just asked for this field
        autoFocus
        rows={2}
        className="min-h-14"
        placeholder="Optional. The agent reads it."
        value={text}
        onChange={(event) => {
          setText(event.target.value);
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            onCancel();
          } else if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            onDeny(text.trim());
          }
        }}
      />
      <div className="flex gap-2">
        <Button type="submit" variant="danger" className="max-md:h-11 max-md:flex-1" shortcut="⏎">
          Deny
        </Button>
        <Button variant="quiet" className="max-md:h-11" onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </form>
  );
}

function EditForm({
  input,
  onCancel,
  onAllow,
}: {
  input: Record<string, unknown>;
  onCancel: () => void;
  onAllow: (input: Record<string, unknown>) => void;
}) {
  const [texts, setTexts] = useState(() =>
    Object.fromEntries(
      Object.entries(input).map(([name, value]) => [
        name,
        typeof value === "string" ? value : JSON.stringify(value, null, 2),
      ]),
    ),
  );
  const [problem, setProblem] = useState<string | null>(null);
  const hidden = countHidden(texts);

  function submit(): void {
    const updated: Record<string, unknown> = {};
    for (const [name, text] of Object.entries(texts)) {
      if (typeof input[name] === "string") {
        updated[name] = text;
        continue;
      }
      try {
        updated[name] = JSON.parse(text);
      } catch {
        setProblem(`${name} is not valid JSON. Correct it, or cancel.`);
        return;
      }
    }
    onAllow(updated);
  }

  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {Object.entries(texts).map(([name, text], index) => (
        <div key={name} className="flex flex-col gap-1">
          <label htmlFor={`edit-${name}`} className="text-sm font-medium">
            <SafeText>{name}</SafeText>
          </label>
          <Textarea
            id={`edit-${name}`}
            // oxlint-disable-next-line jsx-a11y/no-autofocus -- the person has just asked for this field
            autoFocus={index === 0}
            spellCheck={false}
            rows={Math.min(12, Math.max(2, text.split("\n").length))}
            className="font-mono text-sm"
            value={text}
            onChange={(event) => {
              setProblem(null);
              setTexts({ ...texts, [name]: event.target.value });
            }}
            onKeyDown={(event) => {
              if (event.key === "Escape") {
                onCancel();
              } else if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) {
                event.preventDefault();
                submit();
              }
            }}
          />
          {countHidden(text) > 0 && (
            <SafeText className="font-mono text-sm break-all whitespace-pre-wrap text-muted">{text}</SafeText>
          )}
        </div>
      ))}
      {hidden > 0 && <p className="text-waiting">The text has hidden characters, which are marked below it.</p>}
      {problem !== null && (
        <p role="alert" className="text-failed">
          {problem}
        </p>
      )}
      <p className="text-sm text-muted">
        The rules are evaluated for the edited call too, and the agent sees the change.
      </p>
      <div className="flex gap-2">
        <Button type="submit" variant="primary" className="max-md:h-11 max-md:flex-1">
          Allow as edited
        </Button>
        <Button variant="quiet" className="max-md:h-11" onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </form>
  );
}
