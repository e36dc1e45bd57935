// Policy: which calls of agents run, need approval or are denied, why, and who decided.
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ComponentType, lazy, Suspense } from "react";

import { useActions } from "@/actions/use-actions";
import { SkeletonRows } from "@/design/components/skeleton";
import { usePageTitle } from "@/frame/page-title";
import { Sections } from "@/frame/sections";

import { POLICY_SECTIONS, POLICY_TITLES, type PolicySection } from "./search";

const route = getRouteApi("/frame/policy");

/** Each section is loaded when it is first opened. */
const SECTIONS: Record<PolicySection, ComponentType> = {
  rules: lazy(() => import("./rules/section")),
  edit: lazy(() => import("./edit/section")),
  explain: lazy(() => import("./explain/section")),
  audit: lazy(() => import("./audit/section")),
  hooks: lazy(() => import("./hooks/section")),
};

export default function PolicyPage() {
  const { section = "rules" } = route.useSearch();
  const navigate = route.useNavigate();
  usePageTitle("Policy");

  function show(next: PolicySection | undefined): void {
    if (next !== undefined) {
      void navigate({ search: { section: next } });
    }
  }
  const index = POLICY_SECTIONS.indexOf(section);
  useActions({
    "policy.next-section": () => {
      show(POLICY_SECTIONS[index + 1]);
    },
    "policy.previous-section": () => {
      show(POLICY_SECTIONS[index - 1]);
    },
  });

  const Content = SECTIONS[section];
  return (
    <Sections
      titles={POLICY_TITLES}
      current={section}
      onShow={show}
      link={(one, props) => <Link key={one} to="/policy" search={{ section: one }} {...props} />}
    >
      <Suspense fallback={<SkeletonRows />}>
        <Content key={section} />
      </Suspense>
    </Sections>
  );
}
