// The rules of one layer, by outcome in the order of precedence.
import type { Permissions } from "@/api/queries/policy";

import { OUTCOMES } from "../model";
import { OutcomeMark, RuleText } from "../marks";

export function RuleList({ permissions, label }: { permissions: Permissions; label: string }) {
  return (
    <dl aria-label={label} className="grid grid-cols-[5rem_minmax(0,1fr)] gap-y-2">
      {OUTCOMES.filter((outcome) => permissions[outcome].length > 0).map((outcome) => (
        <div key={outcome} className="contents">
          <dt>
            <OutcomeMark outcome={outcome} of="rule" />
          </dt>
          <dd>
            <ul className="flex flex-col gap-1">
              {permissions[outcome].map((rule, index) => (
                <li key={`${rule} ${index}`}>
                  <RuleText>{rule}</RuleText>
                </li>
              ))}
            </ul>
          </dd>
        </div>
      ))}
    </dl>
  );
}
