// Settings: what the organisation works with, and who may do what.
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ComponentType, lazy, Suspense } from "react";

import { useActions } from "@/actions/use-actions";
import { Select } from "@/design/components/select";
import { SkeletonRows } from "@/design/components/skeleton";
import { usePageTitle } from "@/frame/page-title";

import { SECTION_TITLES, SETTINGS_SECTIONS, type SettingsSection } from "./search";

const route = getRouteApi("/frame/settings");

/** Each section is loaded when it is first opened. */
const SECTIONS: Record<SettingsSection, ComponentType> = {
  agents: lazy(() => import("./agents/section")),
  environments: lazy(() => import("./environments/section")),
  projects: lazy(() => import("./projects/section")),
  webhooks: lazy(() => import("./webhooks/section")),
  keys: lazy(() => import("./keys/section")),
  members: lazy(() => import("./members/section")),
  teams: lazy(() => import("./teams/section")),
  limits: lazy(() => import("./limits/section")),
};

export default function SettingsPage() {
  const { section = "agents" } = route.useSearch();
  const navigate = route.useNavigate();
  usePageTitle("Settings");

  function show(next: SettingsSection | undefined): void {
    if (next !== undefined) {
      void navigate({ search: { section: next } });
    }
  }
  const index = SETTINGS_SECTIONS.indexOf(section);
  useActions({
    "settings.next-section": () => {
      show(SETTINGS_SECTIONS[index + 1]);
    },
    "settings.previous-section": () => {
      show(SETTINGS_SECTIONS[index - 1]);
    },
  });

  const Content = SECTIONS[section];
  return (
    <div className="flex min-h-0 flex-1 max-md:flex-col">
      <nav aria-label="Sections" className="w-48 shrink-0 overflow-y-auto border-r p-2 max-md:hidden">
        {SETTINGS_SECTIONS.map((one) => (
          <Link
            key={one}
            to="/settings"
            search={{ section: one }}
            aria-current={one === section ? "page" : undefined}
            className="flex h-8 items-center rounded-md px-2 text-muted transition-colors hover:bg-hover hover:text-text aria-[current]:bg-selected aria-[current]:font-medium aria-[current]:text-text"
          >
            {SECTION_TITLES[one]}
          </Link>
        ))}
      </nav>
      <div className="border-b px-4 py-2 md:hidden">
        <Select
          label="Section"
          className="w-full"
          options={SETTINGS_SECTIONS.map((one) => ({ value: one, label: SECTION_TITLES[one] }))}
          value={section}
          onChange={(next) => {
            show(next ?? undefined);
          }}
        />
      </div>
      <section aria-label={SECTION_TITLES[section]} className="flex min-h-0 min-w-0 flex-1 flex-col overflow-y-auto">
        <Suspense fallback={<SkeletonRows />}>
          <Content key={section} />
        </Suspense>
      </section>
    </div>
  );
}
