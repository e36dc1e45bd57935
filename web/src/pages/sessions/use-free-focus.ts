// Whether no control has the focus: Enter then belongs to the list, and otherwise to the control.
import { useSyncExternalStore } from "react";

const CONTROLS = "a, button, input, select, textarea, [role=button], [role=tab], [role=option]";

function subscribe(listener: () => void): () => void {
  document.addEventListener("focusin", listener);
  document.addEventListener("focusout", listener);
  return () => {
    document.removeEventListener("focusin", listener);
    document.removeEventListener("focusout", listener);
  };
}

export function useFreeFocus(): boolean {
  return useSyncExternalStore(subscribe, () => document.activeElement?.matches(CONTROLS) !== true);
}
