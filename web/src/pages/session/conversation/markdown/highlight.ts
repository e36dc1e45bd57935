// Colours code with shiki and its JavaScript engine, which needs no `eval` and no WebAssembly. Loaded when code is shown.
import { createHighlighterCore, type HighlighterCore, type LanguageInput } from "shiki/core";
import { createJavaScriptRegexEngine } from "shiki/engine/javascript";

export interface Token {
  text: string;
  color: string | undefined;
}

type Loader = () => Promise<{ default: LanguageInput }>;

const LOADERS: Record<string, Loader> = {
  c: () => import("shiki/langs/c.mjs"),
  css: () => import("shiki/langs/css.mjs"),
  csharp: () => import("shiki/langs/csharp.mjs"),
  diff: () => import("shiki/langs/diff.mjs"),
  docker: () => import("shiki/langs/docker.mjs"),
  go: () => import("shiki/langs/go.mjs"),
  html: () => import("shiki/langs/html.mjs"),
  ini: () => import("shiki/langs/ini.mjs"),
  java: () => import("shiki/langs/java.mjs"),
  javascript: () => import("shiki/langs/javascript.mjs"),
  json: () => import("shiki/langs/json.mjs"),
  jsx: () => import("shiki/langs/jsx.mjs"),
  kotlin: () => import("shiki/langs/kotlin.mjs"),
  make: () => import("shiki/langs/make.mjs"),
  php: () => import("shiki/langs/php.mjs"),
  python: () => import("shiki/langs/python.mjs"),
  rust: () => import("shiki/langs/rust.mjs"),
  shellscript: () => import("shiki/langs/shellscript.mjs"),
  sql: () => import("shiki/langs/sql.mjs"),
  swift: () => import("shiki/langs/swift.mjs"),
  toml: () => import("shiki/langs/toml.mjs"),
  tsx: () => import("shiki/langs/tsx.mjs"),
  typescript: () => import("shiki/langs/typescript.mjs"),
  xml: () => import("shiki/langs/xml.mjs"),
  yaml: () => import("shiki/langs/yaml.mjs"),
};

const ALIASES: Record<string, string> = {
  bash: "shellscript",
  sh: "shellscript",
  shell: "shellscript",
  zsh: "shellscript",
  console: "shellscript",
  cs: "csharp",
  dockerfile: "docker",
  golang: "go",
  js: "javascript",
  mjs: "javascript",
  jsonc: "json",
  kt: "kotlin",
  makefile: "make",
  patch: "diff",
  py: "python",
  rs: "rust",
  ts: "typescript",
  yml: "yaml",
};

const THEMES = { light: "github-light-high-contrast", dark: "github-dark-high-contrast" } as const;

let starting: Promise<HighlighterCore> | null = null;

function start(): Promise<HighlighterCore> {
  starting ??= createHighlighterCore({
    themes: [
      import("shiki/themes/github-light-high-contrast.mjs"),
      import("shiki/themes/github-dark-high-contrast.mjs"),
    ],
    langs: [],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  });
  return starting;
}

/** The tokens of each line. Null for a language that is not known. */
export async function highlight(code: string, language: string, theme: "light" | "dark"): Promise<Token[][] | null> {
  const name = ALIASES[language.toLowerCase()] ?? language.toLowerCase();
  const load = Object.hasOwn(LOADERS, name) ? LOADERS[name] : undefined;
  if (load === undefined) {
    return null;
  }
  const [highlighter, grammar] = await Promise.all([start(), load()]);
  await highlighter.loadLanguage(grammar.default);
  const lines = highlighter.codeToTokensBase(code, { lang: name, theme: THEMES[theme], tokenizeMaxLineLength: 1000 });
  return lines.map((line) => line.map((token) => ({ text: token.content, color: token.color })));
}
