// A choice of one among many: what is typed filters the list.
import { Combobox as Base } from "@base-ui/react/combobox";
import { Check, ChevronDown } from "lucide-react";

import { cn } from "../classes";
import { SafeText } from "../text/text";
import { FIELD } from "./input";
import { POPUP, POPUP_ITEM } from "./popup";
import type { SelectOption } from "./select";

/** More than this would make typing slow. What is typed still searches all. */
const SHOWN = 200;

interface ComboboxProps {
  /** The id of the field, to which a label refers. */
  id: string;
  options: readonly SelectOption<string>[];
  value: string | null;
  onChange: (value: string | null) => void;
  placeholder?: string;
  /** What the list says if nothing matches. */
  emptyText?: string;
  className?: string;
  "aria-describedby"?: string | undefined;
  "aria-invalid"?: true | undefined;
}

export function Combobox({
  options,
  value,
  onChange,
  placeholder,
  emptyText = "Nothing matches.",
  className,
  ...field
}: ComboboxProps) {
  return (
    <Base.Root
      items={options}
      limit={SHOWN}
      autoHighlight
      isItemEqualToValue={(one, other) => one.value === other.value}
      value={options.find((option) => option.value === value) ?? null}
      onValueChange={(option) => {
        onChange(option?.value ?? null);
      }}
    >
      <Base.InputGroup className={cn("relative", className)}>
        <Base.Input {...field} placeholder={placeholder} className={cn(FIELD, "h-8 pr-8 max-md:h-11")} />
        <Base.Trigger
          aria-label="Show all"
          className="absolute inset-y-0 right-0 flex w-8 items-center justify-center text-muted"
        >
          <ChevronDown className="size-4" />
        </Base.Trigger>
      </Base.InputGroup>
      <Base.Portal>
        <Base.Positioner sideOffset={4} className="z-50">
          <Base.Popup
            className={cn(
              POPUP,
              "max-h-[min(20rem,var(--available-height))] w-[var(--anchor-width)] overflow-y-auto p-1",
            )}
          >
            <Base.Empty>
              <p className="px-2 py-1.5 text-muted">{emptyText}</p>
            </Base.Empty>
            <Base.List>
              {(option: SelectOption<string>) => (
                <Base.Item key={option.value} value={option} className={POPUP_ITEM}>
                  <SafeText className="min-w-0 flex-1 truncate">{option.label}</SafeText>
                  <Base.ItemIndicator>
                    <Check />
                  </Base.ItemIndicator>
                </Base.Item>
              )}
            </Base.List>
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
