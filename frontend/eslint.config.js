import js from "@eslint/js";
import { configs as lit } from "eslint-plugin-lit";
import litA11y from "eslint-plugin-lit-a11y";
import { defineConfig } from "eslint/config";
import typescript from "typescript-eslint";

export default defineConfig(
  js.configs.recommended,
  typescript.configs.recommendedTypeChecked,
  lit["flat/recommended"],
  litA11y.configs["flat/recommended"] ?? litA11y.configs.recommended,
  { languageOptions: { parserOptions: { projectService: true } } },
  { rules: { "one-var": ["error", "never"] } },
);
