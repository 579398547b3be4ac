// The part of Isthmus in the browser, for JupyterLab 4 and Notebook 7. It tells our extension in the server which documents
// are open (a message {documents, current}), and reads them again that an agent wrote (a message {reload}).
// It is written as JupyterLab loads it, so that nothing has to be built.
(() => {
  "use strict";

  const LOOK_MILLISECONDS = 1000; // interval at which the open documents are looked at
  const RETRY_MILLISECONDS = 5000; // pause before another connection to the server
  const SAVING_MILLISECONDS = 700; // time after which the browser's own saving has ended

  function activate(app) {
    const { contents, serverSettings } = app.serviceManager;
    const told = new Set(); // paths of documents with unsaved text whose change on disk the user was told
    const saved = new WeakMap(); // the cells of a notebook as they are on disk, by its context
    let socket, reported = "", work = Promise.resolve();

    const widgets = () => [...app.shell.widgets("main")].filter(({ context }) => context?.model && context.contentsModel !== undefined);
    // Other drives than the server's files and those of shared editing have no files in the workspace.
    const pathOf = ({ path }) => (["", "RTC"].includes(contents.driveName(path)) ? contents.localPath(path) : undefined);

    const cellsOf = ({ model }) => (model.cells ? JSON.stringify(model.toJSON().cells) : undefined);
    // JupyterLab itself changes the metadata of a notebook when the kernel starts: that is no text of the user.
    const isUnsaved = (context) => context.model.dirty && !(context.model.cells && saved.get(context) === cellsOf(context));

    function noteSaved(context) {
      if (saved.has(context)) return;
      saved.set(context, "");
      const note = () => { if (!context.isDisposed) saved.set(context, cellsOf(context)); };
      void context.ready.then(note);
      context.saveState.connect((_, state) => { if (state === "completed") note(); });
    }

    function report() {
      for (const { context } of widgets()) noteSaved(context);
      if (socket?.readyState !== 1) return;
      const documents = [...new Set(widgets().map(({ context }) => pathOf(context)))].filter((path) => path);
      const { context } = app.shell.currentWidget ?? {}, current = (context && pathOf(context)) ?? null;
      const message = JSON.stringify({ documents, current });
      if (message === reported) return;
      socket.send(message);
      reported = message;
    }

    function connect() {
      const { wsUrl, token, appendToken, WebSocket } = serverSettings;
      const query = appendToken && token ? `?token=${encodeURIComponent(token)}` : "";
      socket = new WebSocket(`${wsUrl}isthmus/documents/browser${query}`);
      socket.onopen = () => { reported = ""; report(); };
      socket.onclose = () => setTimeout(connect, RETRY_MILLISECONDS);
      socket.onmessage = ({ data }) => {
        const paths = new Set(JSON.parse(data).reload);
        for (const context of new Set(widgets().map((widget) => widget.context))) {
          if (paths.has(pathOf(context))) work = work.then(() => follow(context)).catch((error) => console.warn("Isthmus:", error));
        }
      };
    }

    async function isChanged(context) {
      if (context.isDisposed || !context.isReady) return false;
      const { last_modified } = await contents.get(context.path, { content: false });
      return !context.isDisposed && last_modified !== context.contentsModel?.last_modified;
    }

    /** Read a document again if it has changed on disk and has no unsaved text. */
    async function follow(context) {
      // Of a document in shared editing the server itself reads what has changed.
      if (context.model.collaborative || !(await isChanged(context))) return;
      if (isUnsaved(context)) {
        await new Promise((done) => setTimeout(done, SAVING_MILLISECONDS)); // it may be saved just now
        if (!(await isChanged(context))) return;
      }
      if (isUnsaved(context) || !(await read(context))) tell(pathOf(context));
      else told.delete(pathOf(context));
    }

    function tell(path) {
      if (told.has(path)) return;
      told.add(path);
      const message = `${path} has changed on disk; your unsaved text stays as it is. Saving asks which of the two to keep.`;
      if (app.commands.hasCommand("apputils:notify")) void app.commands.execute("apputils:notify", { message, type: "warning", options: { autoClose: false } });
      else console.warn("Isthmus:", message);
    }

    /** Read a document again; return whether that was done. What the user types meanwhile is not touched. */
    async function read(context) {
      const { model } = context, known = context.contentsModel, shown = widgets().filter((widget) => widget.context === context);
      const cells = shown.map(({ content }) => [content, content?.activeCellIndex]).filter(([, index]) => index !== undefined);
      let isTyped = false;
      const unlessTyped = (take) => (value) => {
        isTyped ||= isUnsaved(context);
        if (isTyped) return;
        take(value);
        saved.set(context, cellsOf(context));
        model.dirty = false;
      };
      model.fromString = unlessTyped((text) => setText(model, text));
      model.fromJSON = unlessTyped((notebook) => Object.getPrototypeOf(model).fromJSON.call(model, notebook));
      try {
        await context.revert();
      } finally {
        delete model.fromString;
        delete model.fromJSON;
      }
      if (isTyped) context._contentsModel = known; // so that saving still finds that the file has changed
      else for (const [content, index] of cells) content.activeCellIndex = Math.min(index, content.widgets.length - 1);
      return !isTyped;
    }

    connect();
    app.shell.currentChanged?.connect(report);
    setInterval(report, LOOK_MILLISECONDS);
  }

  /** Replace only the parts that differ, so that cursor, view and undo history stay. */
  function setText(model, text) {
    const old = model.toString(), parts = differing(old.split(/(?<=\n)/), text.split(/(?<=\n)/));
    model.sharedModel.transact(() => {
      for (const [at, before, after] of parts.reverse()) {
        const shorter = Math.min(before.length, after.length);
        let start = 0, end = 0;
        while (start < shorter && before[start] === after[start]) start += 1;
        while (end < shorter - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
        model.sharedModel.updateSource(at + start, at + before.length - end, after.slice(start, after.length - end));
      }
    });
  }

  /** Return what lies between lines that both texts have once and in the same order: its place, and both texts of it. */
  function differing(old, now) {
    const places = (lines) => lines.reduce((found, line, at) => found.set(line, found.has(line) ? -1 : at), new Map());
    const inOld = places(old), inNow = places(now), found = [];
    let from = 0, to = 0, at = 0;
    const close = (end, other) => {
      const before = old.slice(from, end).join(""), after = now.slice(to, other).join("");
      if (before !== after) found.push([at, before, after]);
      at += before.length;
      [from, to] = [end, other];
    };
    old.forEach((line, index) => {
      if (inOld.get(line) >= 0 && (inNow.get(line) ?? -1) >= to) close(index, inNow.get(line));
    });
    close(old.length, now.length);
    return found;
  }

  const plugin = { id: "isthmus:documents", description: "Reads open documents again that agents write.", autoStart: true, activate };
  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB.isthmus = { init() {}, get: async () => () => ({ __esModule: true, default: plugin }) };
})();
