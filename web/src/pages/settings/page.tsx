// Settings: what the organisation works with, and who may do what.
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ComponentType, Suspense } from "react";

import { useActions } from "@/actions/use-actions";
import { SkeletonRows } from "@/design/components/skeleton";
import { lazyPart } from "@/frame/lazy-part";
import { usePageTitle } from "@/frame/page-title";
import { Sections } from "@/frame/sections";

import { SECTION_TITLES, SETTINGS_SECTIONS, type SettingsSection } from "./search";

const route = getRouteApi("/frame/settings");

/** Each section is loaded when it is first opened. */
const SECTIONS: Record<SettingsSection, ComponentType> = {
  agents: lazyPart(SECTION_TITLES.agents, () => import("./agents/section")),
  environments: lazyPart(SECTION_TITLES.environments, () => import("./environments/section")),
  projects: lazyPart(SECTION_TITLES.projects, () => import("./projects/section")),
  webhooks: lazyPart(SECTION_TITLES.webhooks, () => import("./webhooks/section")),
  keys: lazyPart(SECTION_TITLES.keys, () => import("./keys/section")),
  members: lazyPart(SECTION_TITLES.members, () => import("./members/section")),
  teams: lazyPart(SECTION_TITLES.teams, () => import("./teams/section")),
  limits: lazyPart(SECTION_TITLES.limits, () => import("./limits/section")),
  notifications: lazyPart(SECTION_TITLES.notifications, () => import("./notifications/section")),
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
    <Sections
      titles={SECTION_TITLES}
      current={section}
      onShow={show}
      link={(one, props) => <Link key={one} to="/settings" search={{ section: one }} {...props} />}
    >
      <Suspense fallback={<SkeletonRows />}>
        <Content key={section} />
      </Suspense>
    </Sections>
  );
}
