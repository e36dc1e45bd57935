// A choice of one among few. For many options, use a combobox.
import { Select as Base } from "@base-ui/react/select";
import { Check, ChevronDown } from "lucide-react";

import { cn } from "../classes";
import { SafeText } from "../text/text";
import { POPUP, POPUP_ITEM } from "./popup";

export interface SelectOption<T extends string> {
  value: T;
  label: string;
}

interface SelectProps<T extends string> {
  options: readonly SelectOption<T>[];
  value: T | null;
  onChange: (value: T | null) => void;
  /** The name of the choice for screen readers, unless a label refers to `id`. */
  label?: string;
  id?: string;
  placeholder?: string;
  /** The label of an option that clears the choice, such as "All projects". */
  clearLabel?: string;
  disabled?: boolean;
  className?: string;
}

export function Select<T extends string>(props: SelectProps<T>) {
  const { options, value, onChange, label, id, placeholder, clearLabel, disabled = false, className } = props;
  const items = [...(clearLabel === undefined ? [] : [{ value: null, label: clearLabel }]), ...options];
  return (
    <Base.Root<T | null> items={items} value={value} onValueChange={onChange} disabled={disabled}>
      <Base.Trigger
        id={id}
        aria-label={label}
        onKeyDown={(event) => {
          // A letter is a shortcut of the page. It must not change the choice unseen as well.
          if (event.key.length === 1 && event.key !== " ") {
            event.preventBaseUIHandler();
          }
        }}
        className={cn(
          "flex h-8 items-center gap-1.5 rounded-md border border-line-strong bg-canvas px-2 transition-colors select-none hover:bg-hover data-disabled:opacity-50 max-md:h-11",
          className,
        )}
      >
        <Base.Value className="min-w-0 flex-1 truncate text-left">
          {(selected: T | null) => (
            <SafeText>
              {items.find((option) => option.value === selected)?.label ?? placeholder ?? selected ?? "Choose"}
            </SafeText>
          )}
        </Base.Value>
        <Base.Icon>
          <ChevronDown className="size-4 text-muted" />
        </Base.Icon>
      </Base.Trigger>
      <Base.Portal>
        <Base.Positioner alignItemWithTrigger={false} sideOffset={4} className="z-50">
          <Base.Popup
            className={cn(POPUP, "max-h-[var(--available-height)] min-w-[var(--anchor-width)] overflow-auto p-1")}
          >
            {items.map((option) => (
              <Base.Item key={option.value ?? ""} value={option.value} className={POPUP_ITEM}>
                <Base.ItemText className="flex-1">
                  <SafeText>{option.label}</SafeText>
                </Base.ItemText>
                <Base.ItemIndicator>
                  <Check />
                </Base.ItemIndicator>
              </Base.Item>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
