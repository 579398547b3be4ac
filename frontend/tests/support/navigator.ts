/** Let modules that are imported from now on see a user with these languages, best first. */
export function inject(languages: string[]): void {
  Object.defineProperty(globalThis, "navigator", {
    configurable: true,
    value: { languages, language: languages[0], userAgent: "tests" },
  });
}
