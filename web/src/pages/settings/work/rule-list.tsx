// The rules that an agent or a project has of its own.
import type { Agent } from "@/api/queries/agents";
import { Section } from "@/design/components/facts";
import { CodeBlock } from "@/design/text/text";

interface Props {
  permissions: Agent["permissions"];
  /** What is shown if there is no rule. */
  none: string;
}

export function RuleList({ permissions, none }: Props) {
  const { deny = [], ask = [], allow = [], hooks } = permissions ?? {};
  const rules = [
    ...deny.map((rule) => `deny   ${rule}`),
    ...ask.map((rule) => `ask    ${rule}`),
    ...allow.map((rule) => `allow  ${rule}`),
  ];
  return (
    <Section title="Rules">
      {rules.length === 0 ? (
        <p className="text-muted">{none}</p>
      ) : (
        <CodeBlock label="List of rules">{rules.join("\n")}</CodeBlock>
      )}
      {hooks !== undefined && hooks !== null && (
        <CodeBlock label="Hooks">{JSON.stringify({ hooks }, null, 2)}</CodeBlock>
      )}
    </Section>
  );
}
