// The navigation on a phone, within reach of a thumb.
import { Link } from "@tanstack/react-router";
import { Ellipsis, Plus } from "lucide-react";

import { Menu, MenuContent, MenuLink, MenuTrigger } from "../design/components/menu";
import { NAVIGATION } from "./navigation";
import { InboxCount } from "./sidebar";

const IN_BAR = 2;
const ENTRY =
  "relative flex h-14 flex-1 flex-col items-center justify-center gap-0.5 text-xs text-muted data-[status=active]:font-medium data-[status=active]:text-accent";

export function BottomBar() {
  return (
    <nav aria-label="Main" className="flex shrink-0 border-t bg-surface pb-[env(safe-area-inset-bottom)] md:hidden">
      {NAVIGATION.slice(0, IN_BAR).map(({ to, title, icon: Icon }) => (
        <Link key={to} to={to} className={ENTRY}>
          <Icon aria-hidden className="size-5" />
          {title}
          {to === "/inbox" && <InboxCount className="absolute top-1 left-1/2 ml-2" />}
        </Link>
      ))}
      <Link to="/new" className={ENTRY}>
        <Plus aria-hidden className="size-5" />
        New
      </Link>
      <Menu>
        <MenuTrigger className={ENTRY}>
          <Ellipsis aria-hidden className="size-5" />
          More
        </MenuTrigger>
        <MenuContent side="top" align="end">
          {NAVIGATION.slice(IN_BAR).map(({ to, title, icon: Icon }) => (
            <MenuLink key={to} render={<Link to={to} />} closeOnClick>
              <Icon aria-hidden />
              {title}
            </MenuLink>
          ))}
        </MenuContent>
      </Menu>
    </nav>
  );
}
