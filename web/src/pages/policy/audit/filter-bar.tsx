// Filters of the audit trail: what, with which outcome, who, which tool and session, and when.
import { useState } from "react";

import { cn } from "@/design/classes";
import { Input } from "@/design/components/input";
import { Select } from "@/design/components/select";

import type { PolicySearch } from "../search";
import { AUDIT_OUTCOMES, KIND_TITLES, KINDS, OUTCOME_TITLES } from "./describe";

type Change = {
  [K in "kind" | "outcome" | "member" | "tool" | "session" | "from" | "until"]?: PolicySearch[K] | undefined;
};

interface Props {
  search: PolicySearch;
  onChange: (change: Change) => void;
}

const KIND_OPTIONS = KINDS.map((value) => ({ value, label: KIND_TITLES[value] }));
const OUTCOME_OPTIONS = AUDIT_OUTCOMES.map((value) => ({ value, label: OUTCOME_TITLES[value] }));

export function AuditFilterBar({ search, onChange }: Props) {
  return (
    <div role="group" aria-label="Filters" className="contents">
      <Select
        label="Kind"
        options={KIND_OPTIONS}
        value={search.kind ?? null}
        clearLabel="All kinds"
        onChange={(kind) => {
          onChange({ kind: kind ?? undefined });
        }}
      />
      <Select
        label="Outcome"
        options={OUTCOME_OPTIONS}
        value={search.outcome ?? null}
        clearLabel="All outcomes"
        onChange={(outcome) => {
          onChange({ outcome: outcome ?? undefined });
        }}
      />
      <TextFilter
        label="Member"
        placeholder="Member"
        value={search.member}
        onCommit={(member) => {
          onChange({ member });
        }}
      />
      <TextFilter
        label="Tool"
        placeholder="Tool"
        value={search.tool}
        onCommit={(tool) => {
          onChange({ tool });
        }}
      />
      <TextFilter
        label="Session"
        className="max-md:col-span-2"
        placeholder="Session ID"
        value={search.session}
        onCommit={(session) => {
          onChange({ session });
        }}
      />
      <span className="flex flex-wrap items-center gap-2 max-md:contents">
        <Day
          label="From"
          value={search.from}
          onChange={(from) => {
            onChange({ from });
          }}
        />
        <Day
          label="Until"
          value={search.until}
          onChange={(until) => {
            onChange({ until });
          }}
        />
      </span>
    </div>
  );
}

interface TextFilterProps {
  label: string;
  placeholder: string;
  className?: string;
  value: string | undefined;
  onCommit: (text: string | undefined) => void;
}

/** The server matches the whole text, so it takes effect with Enter, or when the field is left. */
function TextFilter({ value = "", ...props }: TextFilterProps) {
  return <TextField key={value} value={value} {...props} />;
}

function TextField({ label, placeholder, className, value, onCommit }: TextFilterProps & { value: string }) {
  const [text, setText] = useState(value);
  function commit(): void {
    if (text.trim() !== value) {
      onCommit(text.trim() === "" ? undefined : text.trim());
    }
  }
  return (
    <Input
      type="search"
      aria-label={label}
      placeholder={placeholder}
      className={cn("w-32 max-md:w-full", className)}
      value={text}
      onValueChange={setText}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === "Enter") {
          commit();
        }
      }}
    />
  );
}

function Day({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string | undefined;
  onChange: (day: string | undefined) => void;
}) {
  return (
    <label className="flex min-w-0 items-center gap-1.5 text-sm text-muted">
      {label}
      <Input
        type="date"
        className="w-36 min-w-0 max-md:w-auto max-md:flex-1"
        value={value ?? ""}
        onValueChange={(day) => {
          onChange(day === "" ? undefined : day);
        }}
      />
    </label>
  );
}
