// A block of code in a message: coloured when its language is known, with a button that copies it.
import { memo, useEffect, useState } from "react";

import { CopyButton } from "@/design/components/copy";
import { SafeText } from "@/design/text/text";
import { useIsDark } from "@/frame/theme";

import type { Token } from "./highlight";

/** Longer code stays plain, so that nothing freezes. */
const LONGEST = 20_000;

export const Code = memo(function Code({ code, language }: { code: string; language: string }) {
  const lines = useTokens(code, language);
  return (
    <div className="group/code relative my-3 overflow-hidden rounded-md border bg-code">
      <pre
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a box that scrolls must be reachable by keyboard
        tabIndex={0}
        role="region"
        aria-label={language === "" ? "Code" : `Code, ${language}`}
        className="max-h-[32rem] overflow-auto p-3 font-mono text-sm whitespace-pre outline-offset-[-2px] pointer-coarse:pr-14"
      >
        {lines === null ? (
          <SafeText limit={Number.POSITIVE_INFINITY}>{code}</SafeText>
        ) : (
          <bdi>
            {lines.map((line, index) => (
              <span key={index}>
                {line.map((token, at) => (
                  <span key={at} style={token.color === undefined ? undefined : { color: token.color }}>
                    <SafeText limit={Number.POSITIVE_INFINITY}>{token.text}</SafeText>
                  </span>
                ))}
                {index < lines.length - 1 && "\n"}
              </span>
            ))}
          </bdi>
        )}
      </pre>
      <span className="absolute top-1.5 right-1.5 flex items-center gap-1 rounded-sm bg-code text-xs text-muted opacity-0 transition-opacity group-focus-within/code:opacity-100 group-hover/code:opacity-100 pointer-coarse:top-0 pointer-coarse:right-0 pointer-coarse:h-full pointer-coarse:items-start pointer-coarse:p-1 pointer-coarse:opacity-100">
        {language !== "" && <span className="max-w-32 truncate pl-1 pointer-coarse:hidden">{language}</span>}
        <CopyButton text={code} label="the code" />
      </span>
    </div>
  );
});

function useTokens(code: string, language: string): Token[][] | null {
  const isDark = useIsDark();
  const [lines, setLines] = useState<Token[][] | null>(null);
  useEffect(() => {
    if (language === "" || code.length > LONGEST) {
      return undefined;
    }
    let isCurrent = true;
    void import("./highlight")
      .then(({ highlight }) => highlight(code, language, isDark ? "dark" : "light"))
      .catch(() => null)
      .then((found) => {
        if (isCurrent) {
          setLines(found);
        }
      });
    return () => {
      isCurrent = false;
    };
  }, [code, language, isDark]);
  return lines;
}
