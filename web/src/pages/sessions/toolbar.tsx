// Above the list: states with their counts, search, filters, layout, and a new session.
import { Link } from "@tanstack/react-router";
import { Columns3, List, Search } from "lucide-react";
import { useEffect, useEffectEvent, useRef, useState } from "react";

import { useAction } from "@/actions/use-actions";
import type { SessionCounts } from "@/api/contract";
import type { SessionFilters } from "@/api/queries/sessions";
import { SESSION_STATES, type SessionState } from "@/api/session-state";
import { cn } from "@/design/classes";
import { Button, buttonStyle } from "@/design/components/button";
import { Input } from "@/design/components/input";
import { stateTitle } from "@/design/components/state";
import { Tab, TabList, Tabs } from "@/design/components/tabs";

import { FilterMenu, type Owners } from "./filter-menu";
import type { FilterChange } from "./search";

const TYPING_MS = 250;

interface Props {
  filters: SessionFilters;
  layout: "list" | "board";
  isPhone: boolean;
  counts: SessionCounts | undefined;
  owners: Owners;
  onChange: (change: FilterChange, options?: { replace?: boolean }) => void;
  onLayout: () => void;
}

export function Toolbar({ filters, layout, isPhone, counts, owners, onChange, onLayout }: Props) {
  const showsStates = layout === "list" || isPhone;
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-x-2 border-b pr-4 max-md:pr-0">
      {showsStates && (
        <Tabs
          className="min-w-0 max-md:w-full"
          value={filters.state ?? (layout === "board" ? "running" : "all")}
          onValueChange={(value: SessionState | "all") => {
            onChange({ state: value === "all" ? undefined : value });
          }}
        >
          <TabList label="State" className="border-b-0 max-md:border-b">
            {layout === "list" && (
              <Tab value="all" count={counts?.total}>
                All
              </Tab>
            )}
            {SESSION_STATES.map((state) => (
              <Tab key={state} value={state} count={counts?.states[state]}>
                {capitalise(stateTitle(state))}
              </Tab>
            ))}
          </TabList>
        </Tabs>
      )}
      <div className="ml-auto flex items-center gap-2 py-1 max-md:ml-0 max-md:w-full max-md:px-4 max-xl:pl-4">
        <SearchField
          key={filters.q === undefined ? "empty" : "filled"}
          value={filters.q ?? ""}
          onChange={(q) => {
            onChange({ q: q === "" ? undefined : q }, { replace: true });
          }}
        />
        <FilterMenu filters={filters} owners={owners} onChange={onChange} />
        <Button
          variant="quiet"
          size="icon"
          className="max-md:size-11"
          aria-label={layout === "list" ? "Show as a board" : "Show as a list"}
          title={layout === "list" ? "Show as a board (L)" : "Show as a list (L)"}
          onClick={onLayout}
        >
          {layout === "list" ? <Columns3 /> : <List />}
        </Button>
        <Link to="/new" className={cn(buttonStyle({ variant: "primary" }), "max-md:hidden")}>
          New session
        </Link>
      </div>
    </div>
  );
}

function capitalise(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function SearchField({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const [text, setText] = useState(value);
  const input = useRef<HTMLInputElement>(null);
  useAction("sessions.search", () => {
    input.current?.focus();
    input.current?.select();
  });
  const apply = useEffectEvent(() => {
    if (text.trim() !== value) {
      onChange(text.trim());
    }
  });
  useEffect(() => {
    const timer = setTimeout(() => {
      apply();
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [text]);
  return (
    <div className="relative w-56 max-md:w-auto max-md:flex-1">
      <Search aria-hidden className="pointer-events-none absolute top-1/2 left-2 size-4 -translate-y-1/2 text-muted" />
      <Input
        ref={input}
        type="search"
        aria-label="Search titles, messages and files"
        placeholder="Search titles, messages, files"
        value={text}
        className="pl-8"
        onChange={(event) => {
          setText(event.target.value);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") {
            onChange(text.trim());
            input.current?.blur();
          } else if (event.key === "Escape") {
            input.current?.blur();
          }
        }}
      />
    </div>
  );
}
