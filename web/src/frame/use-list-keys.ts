// Moves the selection of a list with j and k, and opens the selected entry with enter.
import { useActions } from "../actions/use-actions";

interface ListKeys {
  /** Actions with the shortcuts `j`, `k` and `enter`, defined in the page's `actions.ts`. */
  next: string;
  previous: string;
  open?: string;
  count: number;
  selected: number;
  onSelect: (index: number) => void;
  onOpen?: (index: number) => void;
}

export function useListKeys({ next, previous, open, count, selected, onSelect, onOpen }: ListKeys): void {
  useActions({
    [next]: () => {
      if (count > 0) {
        onSelect(Math.min(selected + 1, count - 1));
      }
    },
    [previous]: () => {
      if (count > 0) {
        onSelect(Math.max(selected - 1, 0));
      }
    },
    ...(open === undefined
      ? {}
      : {
          [open]: () => {
            if (selected >= 0 && selected < count) {
              onOpen?.(selected);
            }
          },
        }),
  });
}
