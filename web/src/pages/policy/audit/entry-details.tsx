// All fields of an entry of the audit trail, and links to entries like it.
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { AuditEntry } from "@/api/queries/policy";
import { CopyButton } from "@/design/components/copy";
import { formatExactTime } from "@/design/format";
import { CodeBlock, SafeText } from "@/design/text/text";
import { compact } from "@/frame/search";

import type { PolicySearch } from "../search";

const route = getRouteApi("/frame/policy");

export function EntryDetails({ entry }: { entry: AuditEntry }) {
  const { content } = entry;
  return (
    <div className="flex flex-col gap-3 bg-surface px-4 py-3">
      <dl className="grid grid-cols-[9rem_minmax(0,1fr)] gap-x-3 gap-y-1 max-md:grid-cols-1">
        <Fact title="Time">{formatExactTime(new Date(entry.created_at))}</Fact>
        <Fact title="Member" filter={entry.principal === null ? {} : { member: entry.principal }} noun="member">
          {entry.principal_name !== null && <SafeText>{entry.principal_name}</SafeText>}{" "}
          {entry.principal !== null && <Id text={entry.principal} />}
        </Fact>
        <Fact title="Layer">{entry.layer}</Fact>
        <Fact title="Tool" filter={entry.tool === null ? {} : { tool: entry.tool }} noun="tool">
          {entry.tool !== null && <SafeText>{entry.tool}</SafeText>}
        </Fact>
        <Fact title="Input">
          {entry.input_summary !== null && (
            <SafeText className="font-mono text-sm break-all">{entry.input_summary}</SafeText>
          )}
        </Fact>
        <Fact title="Session" filter={entry.session_id === null ? {} : { session: entry.session_id }} noun="session">
          {entry.session_id !== null && <Id text={entry.session_id} />}
        </Fact>
        <Fact title="Turn">{entry.turn_id !== null && <Id text={entry.turn_id} />}</Fact>
        <Fact title="Event">{entry.event_id !== null && <Id text={entry.event_id} />}</Fact>
        <Fact title="Entry">
          <Id text={entry.id} />
        </Fact>
        <Fact title="Hash of the input">{entry.input_hash !== null && <Id text={entry.input_hash} />}</Fact>
        <Fact title="Hash of the content">
          <Id text={entry.content_hash} />
        </Fact>
      </dl>
      {content === null ? (
        <p className="text-sm text-muted">Its content was erased when its session was deleted. The hash stays.</p>
      ) : (
        Object.keys(content).length > 0 && (
          <CodeBlock label="Content" className="break-words whitespace-pre-wrap">
            {JSON.stringify(content, null, 2)}
          </CodeBlock>
        )
      )}
    </div>
  );
}

function Id({ text }: { text: string }) {
  return <CopyButton text={text} label={text} showText className="-ml-1" />;
}

interface FactProps {
  title: string;
  /** Finds entries with the same value. */
  filter?: Pick<PolicySearch, "member" | "tool" | "session">;
  noun?: string;
  children: ReactNode;
}

/** A field that is empty is not shown. */
function Fact({ title, filter = {}, noun = "", children }: FactProps) {
  const search = route.useSearch();
  const hasFilter = Object.keys(filter).length > 0;
  if (children === null || children === false) {
    return null;
  }
  if (Array.isArray(children) && !children.some((one) => one !== false && one !== null && one !== " ")) {
    return null;
  }
  return (
    <>
      <dt className="text-muted">{title}</dt>
      <dd className="flex min-w-0 flex-wrap items-center gap-x-2">
        {children}
        {hasFilter && (
          <Link
            to="/policy"
            search={compact({ ...search, ...filter, item: undefined, open: undefined })}
            className="text-sm text-accent hover:underline"
          >
            Only this {noun}
          </Link>
        )}
      </dd>
    </>
  );
}
