// Where the server is: its address at a proxy may have a path, and then the page is below it, too.

/** Path of the page: `/ui/`, unless the server's address has a path. */
export const PAGE = new URL("../", import.meta.url).pathname;

/** Path of the server with a slash at its end; the paths of A2A follow it. */
export const SERVER = PAGE.slice(0, -"ui/".length);

/** Let the address of the page be below the path of the server if a proxy or a direct connection left it out. */
export function enterPage(): void {
  if (location.pathname.startsWith(PAGE)) return;
  const rest = location.pathname.replace(/^\/ui\/?/, "");
  history.replaceState(history.state, "", PAGE + rest + location.search + location.hash);
}
