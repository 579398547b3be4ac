import js from "@eslint/js";
import { configs as lit } from "eslint-plugin-lit";
import litA11y from "eslint-plugin-lit-a11y";
import { defineConfig } from "eslint/config";
import typescript from "typescript-eslint";

const NEVER_HTML = "expected a template of Lit: text from elsewhere never becomes HTML";

export default defineConfig(
  js.configs.recommended,
  typescript.configs.recommendedTypeChecked,
  lit["flat/recommended"],
  litA11y.configs.recommended,
  {
    languageOptions: { parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "no-restricted-syntax": [
        "error",
        { selector: "MemberExpression[property.name=/^(inner|outer)HTML$/]", message: NEVER_HTML },
        {
          selector: "CallExpression[callee.property.name=/^toLocale/][arguments.length=0]",
          message:
            "expected numeral() of language.ts: a number, or a time, is written as the language of the page does",
        },
        { selector: "Identifier[name=/^unsafe(HTML|SVG|MathML|Static)$/]", message: NEVER_HTML },
      ],
      "one-var": ["error", "never"],
      eqeqeq: ["error", "always", { null: "ignore" }],
      // Listeners may read a variable before it has its value.
      "prefer-const": ["error", { ignoreReadBeforeAssign: true }],
      // Lit calls the listeners of a template with its element as `this`.
      "@typescript-eslint/unbound-method": "off",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
    },
  },
  // The configuration of tools is no part of the project of TypeScript.
  {
    files: ["*.js", "*.ts", "dev/*.ts", "languages/*.ts"],
    extends: [typescript.configs.disableTypeChecked],
    languageOptions: { globals: { URL: "readonly", console: "readonly", process: "readonly" } },
  },
);
