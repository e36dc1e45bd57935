// The routes. Each page is loaded when it is first opened; its search parameters are typed in its `search.ts`.
import { createRootRoute, createRoute, createRouter, Outlet, redirect } from "@tanstack/react-router";

import "./actions/all";
import { setSignedOutHandler } from "./api/client";
import { ApiError } from "./api/errors";
import { queryClient } from "./api/query-client";
import { meQuery } from "./api/queries/me";
import { Frame } from "./frame/frame";
import { lazyPage } from "./frame/lazy-part";
import { PageError, PageNotFound, PagePending } from "./frame/page-states";
import { compact, type RawSearch, readText, safeReturnPath } from "./frame/search";
import { readCompareSearch } from "./pages/compare/search";
import { readHealthSearch } from "./pages/health/search";
import { readInboxSearch } from "./pages/inbox/search";
import { readNewSessionSearch } from "./pages/new-session/search";
import { readPolicySearch } from "./pages/policy/search";
import { readScheduleSearch, readSchedulesSearch } from "./pages/schedules/search";
import { readSessionSearch } from "./pages/session/search";
import { readSessionsSearch } from "./pages/sessions/search";
import { readSettingsSearch } from "./pages/settings/search";
import { readUsageSearch } from "./pages/usage/search";

const rootRoute = createRootRoute({ component: Outlet, notFoundComponent: PageNotFound, errorComponent: PageError });

const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  validateSearch: (search: RawSearch) =>
    compact({
      return_to: readText(search, "return_to"),
      code: readText(search, "code"),
      error: readText(search, "error"),
    }),
  component: lazyPage(() => import("./pages/sign-in/page")),
});

/** Everything that needs a signed-in caller. */
const frameRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: "frame",
  beforeLoad: async ({ location }) => {
    try {
      return { me: await queryClient.query({ ...meQuery, staleTime: "static" }) };
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        throw redirect({ to: "/sign-in", search: { return_to: safeReturnPath(location.href) } });
      }
      throw error;
    }
  },
  component: Frame,
  errorComponent: PageError,
});

const indexRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/inbox" });
  },
});

const inboxRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/inbox",
  validateSearch: readInboxSearch,
  component: lazyPage(() => import("./pages/inbox/page")),
});

const sessionsRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/sessions",
  validateSearch: readSessionsSearch,
  component: lazyPage(() => import("./pages/sessions/page")),
});

const sessionRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/sessions/$sessionId",
  validateSearch: readSessionSearch,
  component: lazyPage(() => import("./pages/session/page")),
});

const compareRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/compare",
  validateSearch: readCompareSearch,
  component: lazyPage(() => import("./pages/compare/page")),
});

const newSessionRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/new",
  validateSearch: readNewSessionSearch,
  component: lazyPage(() => import("./pages/new-session/page")),
});

const deviceRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/device",
  validateSearch: (search: RawSearch) => compact({ user_code: readText(search, "user_code") }),
  component: lazyPage(() => import("./pages/device/page")),
});

const designRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/design",
  component: lazyPage(() => import("./pages/design/page")),
});

const schedulesRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/schedules",
  validateSearch: readSchedulesSearch,
  component: lazyPage(() => import("./pages/schedules/page")),
});

const newScheduleRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/schedules/new",
  component: lazyPage(() => import("./pages/schedules/form/page")),
});

const scheduleRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/schedules/$scheduleId",
  validateSearch: readScheduleSearch,
  component: lazyPage(() => import("./pages/schedules/schedule-page")),
});

const editScheduleRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/schedules/$scheduleId/edit",
  component: lazyPage(() => import("./pages/schedules/form/page")),
});

const usageRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/usage",
  validateSearch: readUsageSearch,
  component: lazyPage(() => import("./pages/usage/page")),
});

const policyRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/policy",
  validateSearch: readPolicySearch,
  component: lazyPage(() => import("./pages/policy/page")),
});

const settingsRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/settings",
  validateSearch: readSettingsSearch,
  component: lazyPage(() => import("./pages/settings/page")),
});

const healthRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: "/health",
  validateSearch: readHealthSearch,
  component: lazyPage(() => import("./pages/health/page")),
});

const routeTree = rootRoute.addChildren([
  signInRoute,
  frameRoute.addChildren([
    indexRoute,
    inboxRoute,
    sessionsRoute,
    sessionRoute,
    compareRoute,
    newSessionRoute,
    deviceRoute,
    designRoute,
    schedulesRoute,
    newScheduleRoute,
    scheduleRoute,
    editScheduleRoute,
    usageRoute,
    policyRoute,
    settingsRoute,
    healthRoute,
  ]),
]);

export const router = createRouter({
  routeTree,
  defaultPreload: "intent",
  defaultPendingMs: 150,
  defaultPendingComponent: PagePending,
  defaultErrorComponent: PageError,
  scrollRestoration: true,
});

setSignedOutHandler(() => {
  const { location } = router.state;
  if (location.pathname !== "/sign-in") {
    queryClient.clear();
    void router.navigate({ to: "/sign-in", search: { return_to: safeReturnPath(location.href) } });
  }
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
