// The frame around every page of a signed-in caller.
import { useQueryClient } from "@tanstack/react-query";
import { Outlet, useNavigate } from "@tanstack/react-router";
import { Suspense, useEffect, useState } from "react";

import { ShortcutHandler } from "../actions/shortcuts";
import { useActions } from "../actions/use-actions";
import { openFeed } from "../api/feed";
import { signOut } from "../api/queries/me";
import { copyText } from "../design/components/copy";
import { showToast } from "../design/components/toast";
import { POLICY_SECTIONS } from "../pages/policy/search";
import { renewSubscription } from "../pages/settings/notifications/push";
import { SETTINGS_SECTIONS } from "../pages/settings/search";
import { BottomBar } from "./bottom-bar";
import { lazyDialog } from "./lazy-part";
import { NAVIGATION } from "./navigation";
import { Sidebar } from "./sidebar";
import { setTheme } from "./theme";
import { TopBar } from "./top-bar";

const Palette = lazyDialog("The palette", () => import("./palette"));
const ShortcutMap = lazyDialog("The list of shortcuts", () => import("./shortcut-map"));

export function Frame() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [open, setOpen] = useState<"palette" | "shortcuts" | null>(null);

  useEffect(() => openFeed(queries), [queries]);

  useEffect(() => {
    // It is tried again with the next page load; the settings show what is wrong.
    renewSubscription().catch(() => undefined);
  }, []);

  useEffect(() => {
    const shortcuts = new ShortcutHandler();
    function onKeyDown(event: KeyboardEvent): void {
      if (shortcuts.handle(event)) {
        event.preventDefault();
      }
    }
    document.addEventListener("keydown", onKeyDown);
    return () => {
      document.removeEventListener("keydown", onKeyDown);
    };
  }, []);

  useActions({
    ...Object.fromEntries(NAVIGATION.map(({ action, to }) => [action, () => void navigate({ to })])),
    ...Object.fromEntries(
      SETTINGS_SECTIONS.map((section) => [
        `settings.${section}`,
        () => void navigate({ to: "/settings", search: { section } }),
      ]),
    ),
    ...Object.fromEntries(
      POLICY_SECTIONS.map((section) => [
        `policy.${section}`,
        () => void navigate({ to: "/policy", search: { section } }),
      ]),
    ),
    "global.palette": () => {
      setOpen("palette");
    },
    "global.shortcuts": () => {
      setOpen("shortcuts");
    },
    "global.new-session": () => void navigate({ to: "/new" }),
    "global.copy-link": () => {
      void copyText(location.href).then((isCopied) => {
        if (isCopied) {
          showToast({ title: "Link copied" });
        }
      });
    },
    "global.theme-light": () => {
      setTheme("light");
    },
    "global.theme-dark": () => {
      setTheme("dark");
    },
    "global.theme-system": () => {
      setTheme("system");
    },
    "global.sign-out": () => {
      signOut().then(
        async () => {
          await navigate({ to: "/sign-in" });
          // Not before: a page that is still shown would read everything again.
          queries.clear();
        },
        (error: unknown) =>
          showToast({
            title: "Signing out failed",
            description: error instanceof Error ? error.message : "",
            tone: "failed",
          }),
      );
    },
  });

  function onOpenChange(isOpen: boolean): void {
    if (!isOpen) {
      setOpen(null);
    }
  }

  return (
    <div className="flex h-dvh">
      <a href="#page" className="fixed top-2 left-2 z-50 rounded-md bg-raised px-3 py-2 shadow-popup not-focus:sr-only">
        Skip to the page
      </a>
      <Sidebar />
      <div className="flex min-w-0 flex-1 flex-col">
        <TopBar />
        <main id="page" tabIndex={-1} className="flex min-h-0 flex-1 flex-col overflow-y-auto outline-none">
          <Outlet />
        </main>
        <BottomBar />
      </div>
      <Suspense>
        {open === "palette" && <Palette open onOpenChange={onOpenChange} />}
        {open === "shortcuts" && <ShortcutMap open onOpenChange={onOpenChange} />}
      </Suspense>
    </div>
  );
}
