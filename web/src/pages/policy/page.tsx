// Policy: which calls of agents run, need approval or are denied, why, and who decided.
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ComponentType, Suspense } from "react";

import { useActions } from "@/actions/use-actions";
import { SkeletonRows } from "@/design/components/skeleton";
import { lazyPart } from "@/frame/lazy-part";
import { usePageTitle } from "@/frame/page-title";
import { Sections } from "@/frame/sections";

import { POLICY_SECTIONS, POLICY_TITLES, type PolicySection } from "./search";

const route = getRouteApi("/frame/policy");

/** Each section is loaded when it is first opened. */
const SECTIONS: Record<PolicySection, ComponentType> = {
  rules: lazyPart(POLICY_TITLES.rules, () => import("./rules/section")),
  edit: lazyPart(POLICY_TITLES.edit, () => import("./edit/section")),
  explain: lazyPart(POLICY_TITLES.explain, () => import("./explain/section")),
  audit: lazyPart(POLICY_TITLES.audit, () => import("./audit/section")),
  hooks: lazyPart(POLICY_TITLES.hooks, () => import("./hooks/section")),
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
