// Tabs. Their value belongs into the address.
import { Tabs as Base } from "@base-ui/react/tabs";
import type { ReactNode } from "react";

import { cn } from "../classes";

export const Tabs = Base.Root;

export function TabList({ className, children, label }: { className?: string; children: ReactNode; label: string }) {
  return (
    <Base.List aria-label={label} className={cn("flex gap-1 overflow-x-auto border-b px-2", className)}>
      {children}
    </Base.List>
  );
}

export function Tab({ value, count, children }: { value: string; count?: number | undefined; children: ReactNode }) {
  return (
    <Base.Tab
      value={value}
      className="-mb-px flex h-9 shrink-0 items-center gap-1.5 border-b-2 border-transparent px-2 text-muted transition-colors outline-offset-[-2px] hover:text-text data-active:border-accent data-active:font-medium data-active:text-text max-md:h-11"
    >
      {children}
      {count !== undefined && <span className="text-xs text-muted">{count}</span>}
    </Base.Tab>
  );
}

export function TabPanel({ className, ...props }: Omit<Base.Panel.Props, "className"> & { className?: string }) {
  return <Base.Panel className={cn("min-h-0 flex-1 outline-offset-[-2px]", className)} {...props} />;
}
