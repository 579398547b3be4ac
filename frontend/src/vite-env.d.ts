declare module "*.css";

declare module "virtual:languages/texts-*" {
  const texts: Readonly<Record<string, Readonly<Record<string, string>>>>;
  export default texts;
}
