// Filters of the sessions: a menu with all of them, and one chip for each that is set.
import { useQuery } from "@tanstack/react-query";
import { ListFilter, X } from "lucide-react";
import { type ReactNode, useState } from "react";

import { useAction } from "@/actions/use-actions";
import { api, required } from "@/api/client";
import { keys } from "@/api/keys";
import { meQuery } from "@/api/queries/me";
import type { SessionFilters } from "@/api/queries/sessions";
import { Button } from "@/design/components/button";
import { Field } from "@/design/components/field";
import { Popover, PopoverContent, PopoverTrigger } from "@/design/components/popover";
import { Select, type SelectOption } from "@/design/components/select";
import { Switch } from "@/design/components/switch";
import { SafeText } from "@/design/text/text";

import type { FilterChange } from "./search";

type Change = (change: FilterChange) => void;
type Choice = "project_id" | "agent_id" | "owner_id" | "harness";

const CHOICES: readonly { name: Choice; label: string; all: string }[] = [
  { name: "project_id", label: "Project", all: "All projects" },
  { name: "agent_id", label: "Agent", all: "All agents" },
  { name: "owner_id", label: "Owner", all: "All owners" },
  { name: "harness", label: "Harness", all: "All harnesses" },
];

/** Members that the list shows, for callers who may not list all members. */
export type Owners = readonly { id: string; name: string }[];

function useOptions(owners: Owners): Record<Choice, SelectOption<string>[]> {
  const { data: me } = useQuery(meQuery);
  const projects = useQuery({
    queryKey: keys.projects,
    queryFn: async ({ signal }) =>
      required(await api.GET("/v1/projects", { params: { query: { limit: 100 } }, signal })),
  });
  const agents = useQuery({
    queryKey: keys.agents,
    queryFn: async ({ signal }) => required(await api.GET("/v1/agents", { params: { query: { limit: 100 } }, signal })),
  });
  const members = useQuery({
    queryKey: ["members"],
    queryFn: async ({ signal }) =>
      required(await api.GET("/v1/members", { params: { query: { limit: 100 } }, signal })),
    enabled: me?.permissions.includes("manage_members") === true,
  });
  const people = new Map<string, string>();
  if (me !== undefined) {
    people.set(me.id, `${me.name} (you)`);
  }
  for (const { id, name } of [...(members.data?.data ?? []), ...owners]) {
    if (!people.has(id)) {
      people.set(id, name);
    }
  }
  const harnesses = new Set(["claude", "native"]);
  for (const agent of agents.data?.data ?? []) {
    if (agent.harness != null) {
      harnesses.add(agent.harness);
    }
  }
  const named = (one: { id: string; name: string }): SelectOption<string> => ({ value: one.id, label: one.name });
  return {
    project_id: projects.data?.data.map(named) ?? [],
    agent_id: agents.data?.data.map(named) ?? [],
    owner_id: [...people].map(([value, label]) => ({ value, label })),
    harness: [...harnesses].map((value) => ({ value, label: value })),
  };
}

interface Props {
  filters: SessionFilters;
  owners: Owners;
  onChange: Change;
}

export function FilterMenu({ filters, owners, onChange }: Props) {
  const [isOpen, setOpen] = useState(false);
  useAction("sessions.filter", () => {
    setOpen(true);
  });
  return (
    <Popover open={isOpen} onOpenChange={setOpen}>
      <PopoverTrigger render={<Button variant="quiet" title="Filter (F)" className="max-md:h-11" />}>
        <ListFilter aria-hidden />
        Filter
      </PopoverTrigger>
      <PopoverContent title="Filter" align="end" className="w-72">
        <FilterFields filters={filters} owners={owners} onChange={onChange} />
      </PopoverContent>
    </Popover>
  );
}

function FilterFields({ filters, owners, onChange }: Props) {
  const options = useOptions(owners);
  return (
    <div className="flex flex-col gap-3 px-2 pb-2">
      {CHOICES.map(({ name, label, all }) => (
        <Field key={name} label={label}>
          {({ id }) => (
            <Select
              id={id}
              className="w-full"
              options={options[name]}
              value={filters[name] ?? null}
              clearLabel={all}
              onChange={(value) => {
                onChange({ [name]: value ?? undefined });
              }}
            />
          )}
        </Field>
      ))}
      <Switch
        checked={filters.pinned === true}
        onCheckedChange={(isOn) => {
          onChange({ pinned: isOn ? true : undefined });
        }}
      >
        Pinned
      </Switch>
      <Switch
        checked={filters.stuck === true}
        onCheckedChange={(isOn) => {
          onChange({ stuck: isOn ? true : undefined });
        }}
      >
        Stuck: has work and does not move
      </Switch>
    </div>
  );
}

interface ChipsProps extends Props {
  parentTitle: string | undefined;
  onClear: () => void;
}

export function FilterChips({ filters, owners, parentTitle, onChange, onClear }: ChipsProps) {
  const options = useOptions(owners);
  const chips: { name: keyof SessionFilters; text: string }[] = CHOICES.flatMap(({ name, label }) => {
    const value = filters[name];
    const title = options[name].find((option) => option.value === value)?.label ?? value;
    return title === undefined ? [] : [{ name, text: `${label}: ${title}` }];
  });
  if (filters.q !== undefined) {
    chips.push({ name: "q", text: `“${filters.q}”` });
  }
  if (filters.parent_id !== undefined) {
    chips.push({ name: "parent_id", text: `Children of: ${parentTitle ?? filters.parent_id}` });
  }
  if (filters.group_id !== undefined) {
    chips.push({ name: "group_id", text: "Started together" });
  }
  if (filters.pinned === true) {
    chips.push({ name: "pinned", text: "Pinned" });
  }
  if (filters.stuck === true) {
    chips.push({ name: "stuck", text: "Stuck" });
  }
  if (chips.length === 0) {
    return null;
  }
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-2 border-b px-4 py-1.5" aria-label="Filters" role="group">
      {chips.map(({ name, text }) => (
        <Chip
          key={name}
          onRemove={() => {
            onChange({ [name]: undefined });
          }}
          label={text}
        >
          <SafeText className="truncate">{text}</SafeText>
        </Chip>
      ))}
      <Button variant="quiet" size="sm" onClick={onClear}>
        Clear
      </Button>
    </div>
  );
}

function Chip({ label, onRemove, children }: { label: string; onRemove: () => void; children: ReactNode }) {
  return (
    <span className="inline-flex h-7 max-w-72 items-center gap-1 rounded-md border border-line-strong pl-2 text-sm">
      {children}
      <button
        type="button"
        aria-label={`Remove the filter ${label}`}
        className="flex size-6 items-center justify-center text-muted hover:text-text"
        onClick={onRemove}
      >
        <X className="size-3.5" />
      </button>
    </span>
  );
}
