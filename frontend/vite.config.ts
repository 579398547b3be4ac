import { defineConfig } from "vite";

// The page is one entry; the editor of diffs is a chunk of its own that comes with the first diff.
export default defineConfig({
  base: "/ui/",
  build: {
    outDir: "../src/isthmus/web/ui",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    sourcemap: false,
    reportCompressedSize: true,
    // The licences of what is bundled go with it.
    license: { fileName: "licenses.md" },
  },
});
