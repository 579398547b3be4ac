import { defineConfig } from "vitest/config";
import { languages } from "./languages/plugin.ts";

export default defineConfig({
  plugins: [languages()],
  test: {
    include: ["tests/**/*.test.ts"],
    setupFiles: ["tests/setup.ts"],
    unstubGlobals: true,
    restoreMocks: true,
    isolate: false,
    testTimeout: 10_000,
  },
});
