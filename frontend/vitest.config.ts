import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    setupFiles: ["tests/setup.ts"],
    unstubGlobals: true,
    restoreMocks: true,
    isolate: false,
    testTimeout: 10_000,
  },
});
