// A cost, with the reason on hover if it is not fully known.
import { explainCost, formatCost } from "./amounts";
import type { Figures } from "./figures";

export function Cost({ figures, className }: { figures: Figures; className?: string | undefined }) {
  return (
    <span className={className} title={explainCost(figures)}>
      {formatCost(figures)}
    </span>
  );
}
