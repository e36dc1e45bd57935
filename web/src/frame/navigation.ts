// The entries of the sidebar.
import { Activity, CalendarClock, ChartNoAxesColumn, Inbox, ListTree, Settings, ShieldCheck } from "lucide-react";
import type { ComponentType } from "react";

export interface NavigationEntry {
  to: "/inbox" | "/sessions" | "/schedules" | "/usage" | "/policy" | "/settings" | "/health";
  title: string;
  icon: ComponentType<{ className?: string }>;
  action: string;
}

export const NAVIGATION: readonly NavigationEntry[] = [
  { to: "/inbox", title: "Inbox", icon: Inbox, action: "global.inbox" },
  { to: "/sessions", title: "Sessions", icon: ListTree, action: "global.sessions" },
  { to: "/schedules", title: "Schedules", icon: CalendarClock, action: "global.schedules" },
  { to: "/usage", title: "Usage", icon: ChartNoAxesColumn, action: "global.usage" },
  { to: "/policy", title: "Policy", icon: ShieldCheck, action: "global.policy" },
  { to: "/settings", title: "Settings", icon: Settings, action: "global.settings" },
  { to: "/health", title: "Health", icon: Activity, action: "global.health" },
];
