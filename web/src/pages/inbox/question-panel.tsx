// Questions of an agent: choices, a free text, and until when.
import { useRef, useState } from "react";

import { useActions } from "@/actions/use-actions";
import type { InboxItem } from "@/api/contract";
import { Button } from "@/design/components/button";
import { Input } from "@/design/components/input";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";
import type { Decisions } from "./decisions";
import { Footer } from "./footer";

type Question = NonNullable<InboxItem["question"]>;
type QuestionItem = Question["questions"][number];

interface Draft {
  labels: readonly string[];
  text: string;
}

const CHOICE =
  "flex min-h-11 cursor-pointer items-start gap-3 rounded-md border px-3 py-2 hover:bg-hover has-checked:border-accent has-checked:bg-selected has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-ring";

export function QuestionPanel({
  item,
  question,
  canAnswer,
  decisions,
}: {
  item: InboxItem;
  question: Question;
  canAnswer: boolean;
  decisions: Decisions;
}) {
  const form = useRef<HTMLFormElement>(null);
  const [drafts, setDrafts] = useState<Readonly<Record<string, Draft>>>({});
  const answers = question.questions.map((one) => [one.question, readAnswer(one, drafts[one.question])] as const);
  const isComplete = answers.every(([, answer]) => answer !== null);
  useActions(
    canAnswer
      ? {
          "inbox.reply": () => {
            form.current?.querySelector<HTMLElement>("input")?.focus();
          },
        }
      : {},
  );

  function submit(): void {
    if (isComplete && canAnswer) {
      void decisions.answer(item, Object.fromEntries(answers) as Record<string, string | string[]>);
    }
  }

  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- keys of its fields
    <form
      ref={form}
      className="flex flex-1 flex-col gap-6"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && event.target instanceof HTMLInputElement) {
          event.preventDefault();
          submit();
        } else if (event.key === "Escape" && event.target instanceof HTMLElement) {
          event.target.blur();
        }
      }}
    >
      {question.questions.map((one) => (
        <QuestionFields
          key={one.question}
          question={one}
          isDisabled={!canAnswer}
          draft={drafts[one.question] ?? { labels: [], text: "" }}
          onChange={(draft) => {
            setDrafts({ ...drafts, [one.question]: draft });
          }}
        />
      ))}
      {question.expires_at !== null && (
        <p className="text-waiting">
          {question.default === null ? "Nobody can answer after that: " : "Without an answer, the default is used: "}
          <Time value={question.expires_at} />
        </p>
      )}
      <Footer hint={canAnswer ? null : "You can see this question. Your role does not permit to answer it."}>
        <Button type="submit" variant="primary" disabled={!isComplete || !canAnswer} shortcut="⏎">
          Answer
        </Button>
        <span className="self-center text-sm text-muted max-md:hidden">
          R goes to the choices, the arrows choose, Enter answers.
        </span>
      </Footer>
    </form>
  );
}

function QuestionFields({
  question,
  isDisabled,
  draft,
  onChange,
}: {
  question: QuestionItem;
  isDisabled: boolean;
  draft: Draft;
  onChange: (draft: Draft) => void;
}) {
  const type = question.multi_select ? "checkbox" : "radio";
  return (
    <fieldset className="flex flex-col gap-2" disabled={isDisabled}>
      <legend className="mb-2 text-lg font-semibold">
        <SafeText>{question.question}</SafeText>
      </legend>
      {question.options.map((option) => (
        <label key={option.label} className={CHOICE}>
          <input
            type={type}
            name={question.question}
            className="mt-0.5 size-4 accent-accent outline-none"
            checked={draft.labels.includes(option.label)}
            onChange={(event) => {
              const others = question.multi_select ? draft.labels.filter((label) => label !== option.label) : [];
              onChange({
                text: question.multi_select ? draft.text : "",
                labels: event.target.checked ? [...others, option.label] : others,
              });
            }}
          />
          <span className="min-w-0 flex-1">
            <SafeText className="font-medium break-words">{option.label}</SafeText>
            {option.description !== null && (
              <SafeText className="block break-words text-muted">{option.description}</SafeText>
            )}
            {option.preview !== null && (
              <SafeText className="mt-1 block overflow-x-auto rounded-sm bg-code p-2 font-mono text-sm whitespace-pre">
                {option.preview}
              </SafeText>
            )}
          </span>
        </label>
      ))}
      {(question.allow_free_text || question.options.length === 0) && (
        <Input
          aria-label={question.options.length === 0 ? "Your answer" : "Another answer"}
          placeholder={question.options.length === 0 ? "Your answer" : "Another answer"}
          value={draft.text}
          onValueChange={(text) => {
            onChange({ text, labels: question.multi_select || text === "" ? draft.labels : [] });
          }}
        />
      )}
    </fieldset>
  );
}

function readAnswer(question: QuestionItem, draft: Draft | undefined): string | string[] | null {
  const text = draft?.text.trim() ?? "";
  const labels = draft?.labels ?? [];
  if (question.multi_select) {
    const all = text === "" ? [...labels] : [...labels, text];
    return all.length === 0 ? null : all;
  }
  return text === "" ? (labels[0] ?? null) : text;
}
