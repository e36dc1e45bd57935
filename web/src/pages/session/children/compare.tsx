// The sessions that are marked, in the address; and the button that opens them side by side.
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { Columns2 } from "lucide-react";

import { Button } from "@/design/components/button";

const route = getRouteApi("/frame/sessions/$sessionId");
const MAX_PICKED = 2;

export function comparePath(ids: readonly string[]): string {
  return `/compare?sessions=${ids.map(encodeURIComponent).join(",")}`;
}

export function usePicked() {
  const { picked = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const router = useRouter();
  const ids = picked.split(",").filter((id) => id !== "");

  function pick(id: string): void {
    const next = ids.includes(id) ? ids.filter((one) => one !== id) : [...ids, id].slice(-MAX_PICKED);
    void navigate({
      search: ({ picked: _, ...search }) => (next.length === 0 ? search : { ...search, picked: next.join(",") }),
      replace: true,
    });
  }
  return {
    ids,
    pick,
    compare: (which: readonly string[] = ids) => void router.navigate({ href: comparePath(which) }),
  };
}

export function CompareButton({ count, onCompare }: { count: number; onCompare: () => void }) {
  return (
    <Button
      shortcut="c"
      variant={count === MAX_PICKED ? "primary" : "secondary"}
      disabled={count !== MAX_PICKED}
      title={count === MAX_PICKED ? undefined : "Mark two sessions first"}
      className="max-md:h-11"
      onClick={onCompare}
    >
      <Columns2 aria-hidden /> Compare{count > 0 ? ` ${count} of ${MAX_PICKED}` : ""}
    </Button>
  );
}
