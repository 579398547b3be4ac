// The list of all keys, in a dialog.

import { html } from "lit";
import { hasLetters, sendKey, setLetters } from "../keys.ts";
import { t } from "../words.ts";

/** What the page has, and so which keys mean something. */
export interface Has {
  tasks: boolean;
  files: boolean;
  written: boolean;
}

function rowsOf(has: Has): [string, string][] {
  const all: [string, string][] = [
    ["g i", t("keyInbox")],
    ["g h", t("keyHistory")],
    ["g s", t("keyTools")],
    ["j k", t("keyNext")],
    ["y", t("keyAllow")],
    ["1\u20139", t("keyOptions")],
    ["n", t("keyTell")],
    ["\u21e7N", t("keyReject")],
    ["e", t("keyEdit")],
    ["v", t("keyView")],
    [sendKey(), t("keySend")],
    ["[ ]", t("keyHunk")],
    ["[ ]", t("keyFile")],
    ["space", t("keyUnseen")],
    ["a x u", t("keyHunks")],
    ["m M", t("keyComment")],
    ["A", t("keyAll")],
    ["c", t("keyNew")],
    ["i", t("keyPrompt")],
    ["l", t("keyModel")],
    ["d", t("keyDiff")],
    ["z", t("keyRewind")],
    ["b", t("keyBranch")],
    ["/", t("keyFind")],
    ["F2", t("keyRename")],
    ["esc esc", t("keyStop")],
  ];
  if (has.files) all.push(["g f", t("keyFiles")], ["/", t("keySearch")], ["m", t("keyMention")], ["x", t("keyLeave")]);
  if (has.written) {
    all.push(
      ["g w", t("keyWritten")],
      ["a x u", t("keyWrittenHunks")],
      ["J K", t("keyWrittenTurns")],
      ["A", t("keyWrittenKeep")],
      ["⌘↵", t("keyWrittenSend")],
    );
  }
  return all.filter(
    ([key]) => has.tasks || !["g h", "g s", "c", "i", "l", "d", "z", "b", "F2", "esc esc"].includes(key),
  );
}

export function keysList(has: Has, closed: () => void) {
  return html`<dialog class="sheet" aria-label=${t("keysList")} @close=${closed}>
    <h2>${t("keysList")}</h2>
    <dl class="facts">
      ${rowsOf(has).map(
        ([key, what]) =>
          html`<dt><kbd>${key}</kbd></dt>
            <dd>${what}</dd>`,
      )}
    </dl>
    <label class="row sm"
      ><input
        type="checkbox"
        .checked=${hasLetters()}
        @change=${(event: Event) => setLetters((event.target as HTMLInputElement).checked)}
      />
      ${t("keyLetters")}</label
    >
    <form method="dialog"><button class="b">${t("close")}</button></form>
  </dialog>`;
}
