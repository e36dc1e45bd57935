// A page with sections, each with an address: a list beside them, and a choice above them on a phone.
import type { ReactNode } from "react";

import { Select } from "@/design/components/select";

const LINK =
  "flex h-8 items-center rounded-md px-2 text-muted transition-colors hover:bg-hover hover:text-text aria-[current]:bg-selected aria-[current]:font-medium aria-[current]:text-text";

export interface SectionLinkProps {
  className: string;
  "aria-current": "page" | undefined;
  children: ReactNode;
}

interface SectionsProps<T extends string> {
  /** In the order of the page. */
  titles: Readonly<Record<T, string>>;
  current: T;
  onShow: (section: T) => void;
  link: (section: T, props: SectionLinkProps) => ReactNode;
  children: ReactNode;
}

export function Sections<T extends string>({ titles, current, onShow, link, children }: SectionsProps<T>) {
  const sections = Object.keys(titles) as T[];
  return (
    <div className="flex min-h-0 flex-1 max-md:flex-col">
      <nav aria-label="Sections" className="w-48 shrink-0 overflow-y-auto border-r p-2 max-md:hidden">
        {sections.map((section) =>
          link(section, {
            className: LINK,
            "aria-current": section === current ? "page" : undefined,
            children: titles[section],
          }),
        )}
      </nav>
      <div className="border-b px-4 py-2 md:hidden">
        <Select
          label="Section"
          className="w-full"
          options={sections.map((section) => ({ value: section, label: titles[section] }))}
          value={current}
          onChange={(next) => {
            if (next !== null) {
              onShow(next);
            }
          }}
        />
      </div>
      <section aria-label={titles[current]} className="flex min-h-0 min-w-0 flex-1 flex-col overflow-y-auto">
        {children}
      </section>
    </div>
  );
}
