import js from "@eslint/js";
import prettier from "eslint-config-prettier";
import a11y from "eslint-plugin-jsx-a11y";
import hooks from "eslint-plugin-react-hooks";
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig([
  { ignores: ["src/api/schema.ts", "node_modules"] },
  js.configs.recommended,
  {
    files: ["**/*.{ts,tsx}"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // Handlers of React may be async functions; the other half of the rule stays.
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: { attributes: false } }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/only-throw-error": [
        "error",
        { allow: [{ from: "package", package: "@tanstack/router-core", name: "Redirect" }] },
      ],
      "@typescript-eslint/consistent-type-definitions": ["error", "interface"],
      "@typescript-eslint/consistent-type-imports": "error",
      // Taking fields out of an object names them.
      "@typescript-eslint/no-unused-vars": ["error", { ignoreRestSiblings: true }],
      "no-restricted-properties": [
        "error",
        { property: "dangerouslySetInnerHTML", message: "Content of models and users is never HTML." },
      ],
      "no-restricted-syntax": [
        "error",
        {
          selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
          message: "Content of models and users is never HTML.",
        },
      ],
    },
  },
  { files: ["**/*.tsx"], ...hooks.configs.flat["recommended-latest"] },
  { files: ["**/*.tsx"], ...a11y.flatConfigs.strict },
  {
    files: ["public/*.js"],
    languageOptions: { globals: { localStorage: "readonly", matchMedia: "readonly", document: "readonly" } },
  },
  prettier,
]);
