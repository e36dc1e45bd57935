// The top bar: the page's title, search, whether the page is live, and the caller's menu.
import { useQuery } from "@tanstack/react-query";
import { Keyboard, LogOut, Monitor, Moon, Search, Sun } from "lucide-react";

import { runAction } from "../actions/registry";
import { displayShortcut } from "../actions/shortcuts";
import { meQuery } from "../api/queries/me";
import { Kbd } from "../design/components/kbd";
import {
  Menu,
  MenuContent,
  MenuItem,
  MenuLabel,
  MenuRadioGroup,
  MenuRadioItem,
  MenuSeparator,
  MenuTrigger,
} from "../design/components/menu";
import { SafeText } from "../design/text/text";
import { LiveState } from "./live-state";
import { useCurrentPageTitle } from "./page-title";
import { setTheme, type Theme, useTheme } from "./theme";

export function TopBar() {
  const title = useCurrentPageTitle();
  return (
    <header className="flex h-12 shrink-0 items-center gap-2 border-b px-4">
      <h1 className="min-w-0 flex-1 text-lg font-semibold">
        {/* It is cut at its own end: on the left, if it is written from right to left. */}
        <SafeText className="block w-fit max-w-full truncate">{title}</SafeText>
      </h1>
      <button
        type="button"
        onClick={() => runAction("global.palette")}
        aria-keyshortcuts="Control+K Meta+K"
        className="flex h-8 items-center gap-2 rounded-md border px-2 text-sm text-muted hover:bg-hover max-md:border-transparent"
      >
        <Search aria-hidden className="size-4" />
        <span className="max-md:sr-only">Search</span>
        <span aria-hidden className="max-md:hidden">
          <Kbd>{displayShortcut("mod+k").join(" ")}</Kbd>
        </span>
      </button>
      <LiveState />
      <MeMenu />
    </header>
  );
}

function MeMenu() {
  const { data: me } = useQuery(meQuery);
  const theme = useTheme();
  const name = me?.name ?? "";
  return (
    <Menu>
      <MenuTrigger
        aria-label={`Your menu: ${name}`}
        className="flex size-8 items-center justify-center rounded-full bg-accent-soft text-sm font-semibold text-accent max-md:size-10"
      >
        {name === "" ? "?" : String.fromCodePoint(name.codePointAt(0) ?? 0).toUpperCase()}
      </MenuTrigger>
      <MenuContent align="end" className="w-60">
        <div className="px-2 py-1">
          <SafeText className="block truncate font-medium">{name}</SafeText>
          <p className="truncate text-sm text-muted">{me?.email ?? me?.role}</p>
        </div>
        <MenuSeparator />
        <MenuLabel>Theme</MenuLabel>
        <MenuRadioGroup
          value={theme}
          onValueChange={(value: Theme) => {
            setTheme(value);
          }}
        >
          <MenuRadioItem value="light">
            <Sun aria-hidden /> Light
          </MenuRadioItem>
          <MenuRadioItem value="dark">
            <Moon aria-hidden /> Dark
          </MenuRadioItem>
          <MenuRadioItem value="system">
            <Monitor aria-hidden /> System
          </MenuRadioItem>
        </MenuRadioGroup>
        <MenuSeparator />
        <MenuItem shortcut="?" onClick={() => runAction("global.shortcuts")}>
          <Keyboard aria-hidden /> Keyboard shortcuts
        </MenuItem>
        <MenuItem onClick={() => runAction("global.sign-out")}>
          <LogOut aria-hidden /> Sign out
        </MenuItem>
      </MenuContent>
    </Menu>
  );
}
