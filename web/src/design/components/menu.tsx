// A menu of actions.
import { Menu as Base } from "@base-ui/react/menu";
import { Check } from "lucide-react";
import type { ReactNode } from "react";

import { cn } from "../classes";
import { Kbd } from "./kbd";
import { POPUP, POPUP_ITEM } from "./popup";

export const Menu = Base.Root;
export const MenuTrigger = Base.Trigger;
export const MenuRadioGroup = Base.RadioGroup;

interface MenuContentProps extends Pick<Base.Positioner.Props, "side" | "align"> {
  className?: string;
  children: ReactNode;
}

export function MenuContent({ className, children, side = "bottom", align = "start" }: MenuContentProps) {
  return (
    <Base.Portal>
      <Base.Positioner side={side} align={align} sideOffset={4} className="z-50">
        <Base.Popup className={cn(POPUP, "max-h-[var(--available-height)] min-w-48 overflow-auto p-1", className)}>
          {children}
        </Base.Popup>
      </Base.Positioner>
    </Base.Portal>
  );
}

interface MenuItemProps extends Omit<Base.Item.Props, "className"> {
  shortcut?: string;
  isDangerous?: boolean;
}

export function MenuItem({ shortcut, isDangerous = false, children, ...props }: MenuItemProps) {
  return (
    <Base.Item className={cn(POPUP_ITEM, isDangerous && "text-failed [&_svg]:text-failed")} {...props}>
      {children}
      {shortcut !== undefined && <Kbd className="ml-auto">{shortcut}</Kbd>}
    </Base.Item>
  );
}

export function MenuLink({ children, ...props }: Omit<Base.LinkItem.Props, "className">) {
  return (
    <Base.LinkItem className={POPUP_ITEM} {...props}>
      {children}
    </Base.LinkItem>
  );
}

export function MenuCheckboxItem({ children, ...props }: Omit<Base.CheckboxItem.Props, "className">) {
  return (
    <Base.CheckboxItem className={POPUP_ITEM} {...props}>
      {children}
      <Base.CheckboxItemIndicator className="ml-auto">
        <Check />
      </Base.CheckboxItemIndicator>
    </Base.CheckboxItem>
  );
}

export function MenuRadioItem({ children, ...props }: Omit<Base.RadioItem.Props, "className">) {
  return (
    <Base.RadioItem className={POPUP_ITEM} {...props}>
      {children}
      <Base.RadioItemIndicator className="ml-auto">
        <Check />
      </Base.RadioItemIndicator>
    </Base.RadioItem>
  );
}

export function MenuSeparator() {
  return <Base.Separator className="my-1 h-px bg-line" />;
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return <div className="px-2 py-1 text-xs font-medium text-muted">{children}</div>;
}
