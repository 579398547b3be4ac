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
    const saved = new WeakMap(); // text or cells of a document as they were read or saved last, by its context
    let socket, reported = "", work = Promise.resolve();

    const widgets = () => [...app.shell.widgets("main")].filter(({ context }) => context?.model && context.contentsModel !== undefined);
    // Other drives than the server's files and those of shared editing have no files in the workspace.
    const pathOf = ({ path }) => (["", "RTC"].includes(contents.driveName(path)) ? contents.localPath(path) : undefined);

    const textOf = ({ model }) => (model.cells ? JSON.stringify(model.toJSON().cells) : model.toString());
    // `model.dirty` says less: JupyterLab itself changes the metadata of a notebook when the kernel starts, which is no
    // text of the user, and text that is typed while a document is being saved counts as saved.
    const isUnsaved = (context) => textOf(context) !== saved.get(context);

    function watchSaving(context) {
      if (saved.has(context)) return;
      let sent;
      saved.set(context, undefined);
      void context.ready.then(() => { if (!context.isDisposed) saved.set(context, textOf(context)); });
      context.saveState.connect((_, state) => {
        if (state === "started") sent = textOf(context);
        else if (state === "completed") saved.set(context, sent);
      });
    }

    function report() {
      for (const { context } of widgets()) watchSaving(context);
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
      const chosen = shown.filter(({ content }) => content?.activeCell).map(({ content }) => [content, content.activeCellIndex, content.activeCell.model.id]);
      let isTyped = false;
      const unlessTyped = (take) => (value) => {
        isTyped ||= isUnsaved(context);
        if (isTyped) return;
        take(value);
        saved.set(context, textOf(context));
        model.dirty = false;
      };
      model.fromString = unlessTyped((text) => setText(model, text));
      model.fromJSON = unlessTyped((notebook) => setNotebook(model, notebook));
      try {
        await context.revert();
      } finally {
        delete model.fromString;
        delete model.fromJSON;
      }
      if (isTyped) context._contentsModel = known; // so that saving still finds that the file has changed
      else for (const [content, index, id] of chosen) choose(content, index, id);
      return !isTyped;
    }

    connect();
    app.shell.currentChanged?.connect(report);
    setInterval(report, LOOK_MILLISECONDS);
  }

  /** Choose the same cell of a notebook as before, or the one in its place. */
  function choose(content, index, id) {
    if (content.activeCell?.model.id === id) return;
    const same = content.widgets.findIndex((cell) => cell.model.id === id);
    content.activeCellIndex = same >= 0 ? same : Math.min(index, content.widgets.length - 1);
  }

  /** Replace only the parts of a text that differ, so that cursor, view and undo history stay. */
  function setText(model, text) {
    const old = model.toString(), lines = [old, text].map((one) => one.split(/(?<=\n)/)), [oldAt, newAt] = lines.map(placesOf);
    model.sharedModel.transact(() => {
      for (const [from, to, other, otherTo] of differing(...lines).reverse()) {
        const before = old.slice(oldAt[from], oldAt[to]), after = text.slice(newAt[other], newAt[otherTo]);
        const shorter = Math.min(before.length, after.length);
        let start = 0, end = 0;
        while (start < shorter && before[start] === after[start]) start += 1;
        while (end < shorter - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
        model.sharedModel.updateSource(oldAt[from] + start, oldAt[to] - end, after.slice(start, after.length - end));
      }
    });
  }

  /** Replace only the cells of a notebook that differ, so that view, outputs and widgets of the others stay. */
  function setNotebook(model, notebook) {
    const now = model.toJSON(), { sharedModel } = model, [oldCells, newCells] = [now, notebook].map(({ cells }) => cells.map(sorted));
    const frame = ({ nbformat, metadata: { kernelspec, language_info, ...metadata } }) => sorted({ nbformat, metadata });
    if (frame(now) !== frame(notebook) || !sharedModel.deleteCellRange || !sharedModel.insertCells) {
      Object.getPrototypeOf(model).fromJSON.call(model, notebook);
      return;
    }
    sharedModel.transact(() => {
      for (const [from, to, other, otherTo] of differing(oldCells, newCells).reverse()) {
        if (to > from) sharedModel.deleteCellRange(from, to);
        if (otherTo > other) sharedModel.insertCells(from, notebook.cells.slice(other, otherTo));
      }
    });
  }

  /** Return a value as text that does not depend on the order of members. */
  function sorted(value) {
    const inOrder = (_, one) => (one && typeof one === "object" && !Array.isArray(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one);
    return JSON.stringify(value, inOrder);
  }

  /** Return where each line begins, and where the last one ends. */
  function placesOf(lines) {
    const places = [0];
    for (const line of lines) places.push(places.at(-1) + line.length);
    return places;
  }

  /** Return the parts between items that both lists have once and in the same order: [from, to] of the old and the new list. */
  function differing(old, now) {
    const places = (items) => items.reduce((found, item, at) => found.set(item, found.has(item) ? -1 : at), new Map());
    const inOld = places(old), inNow = places(now), found = [];
    let from = 0, other = 0;
    const close = (to, otherTo) => {
      let [a, b, c, d] = [from, to, other, otherTo];
      while (a < b && c < d && old[a] === now[c]) { a += 1; c += 1; }
      while (a < b && c < d && old[b - 1] === now[d - 1]) { b -= 1; d -= 1; }
      if (a < b || c < d) found.push([a, b, c, d]);
      [from, other] = [to, otherTo];
    };
    old.forEach((item, at) => {
      if (inOld.get(item) >= 0 && (inNow.get(item) ?? -1) >= other) close(at, inNow.get(item));
    });
    close(old.length, now.length);
    return found;
  }

  const plugin = { id: "isthmus:documents", description: "Reads open documents again that agents write.", autoStart: true, activate };
  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB.isthmus = { init() {}, get: async () => () => ({ __esModule: true, default: plugin }) };
})();
