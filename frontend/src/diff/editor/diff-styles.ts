// The styles of a diff around its editors: their columns, the neck, the choices of hunks.

import { css } from "lit";

export const DIFF_STYLES = css`
  :host {
    --number: max(40px, calc(var(--digits, 3) * 7.3px + 9px));
    --sign: 24px;
    --lead: 32px;
    container-type: inline-size;
  }
  @container (max-width: 759px) {
    .cm-editor {
      --number: max(34px, calc(var(--digits, 3) * 7.3px + 9px));
      --sign: 22px;
      --lead: 8px;
      --inset: 15px;
    }
  }
  .sides {
    --number: max(44px, calc(var(--digits, 3) * 7.3px + 9px));
    --sign: 20px;
    --lead: 0px;
    display: grid;
    grid-template-columns: minmax(0, 1fr) var(--neck) minmax(0, 1fr);
  }
  .side {
    min-width: 0;
  }
  .cap {
    display: flex;
    gap: 8px;
    height: 32px;
    box-sizing: border-box;
    padding: 0 12px 0 52px;
    border-bottom: 1px solid var(--line);
    font: var(--t-xs) var(--font-ui);
    line-height: 31px;
    color: var(--text-3);
    white-space: nowrap;
    overflow: hidden;
  }
  .cap.c {
    padding: 0;
    border-inline: 1px solid var(--line);
  }
  .cap .yours {
    margin-left: auto;
    color: var(--mine);
  }
  .neck {
    position: relative;
    border-inline: 1px solid var(--line);
  }
  .nf {
    position: absolute;
    left: -1px;
    right: -1px;
    background: var(--bg);
    border-block: 1px solid var(--line);
    box-sizing: border-box;
  }
  /* open while undecided, joined when accepted, gone when the old text is kept */
  .nk {
    position: absolute;
    left: -1px;
    right: -1px;
    background: linear-gradient(90deg, var(--del-bg), var(--surface) 38% 62%, var(--add-bg));
    display: flex;
    flex-direction: column;
    align-items: center;
    justify-content: center;
  }
  .nk.yes {
    background: linear-gradient(90deg, var(--del-bg), var(--add-bg));
  }
  .nk.no {
    background: none;
  }
  .nb {
    display: flex;
    flex-direction: column;
    gap: 4px;
    position: sticky;
    top: 48px;
    bottom: 8px;
    z-index: 1;
  }
  .tight .nb {
    flex-direction: row;
    position: relative;
    top: 0;
    bottom: 0;
  }
  .hb {
    width: 28px;
    height: 28px;
    display: grid;
    place-items: center;
    border-radius: 999px;
    border: 1px solid var(--line-2);
    background: var(--raised);
    color: var(--text-2);
    padding: 0;
    flex: none;
    cursor: pointer;
    font: 500 14px/20px var(--font-ui);
  }
  .tight .hb {
    width: 24px;
    height: 24px;
  }
  .hb svg {
    width: 16px;
    height: 16px;
    fill: none;
    stroke: currentColor;
    stroke-width: 1.5;
    stroke-linecap: round;
    stroke-linejoin: round;
  }
  .hb span {
    position: absolute;
    width: 1px;
    height: 1px;
    overflow: hidden;
    clip-path: inset(50%);
  }
  .hb[aria-pressed="true"] {
    background: var(--ink);
    color: var(--on-ink);
    border-color: var(--ink);
  }
  .hb:focus-visible {
    outline: 2px solid var(--focus);
    outline-offset: 2px;
  }
  .cm-hunk .hb {
    width: 26px;
    height: 26px;
  }
  @media (max-width: 719px) {
    .cm-editor {
      --number: max(32px, calc(var(--digits, 3) * 7px + 7px));
      --sign: 18px;
      --lead: 0px;
      --inset: 16px;
    }
  }
  /* one number on a phone */
  @media (max-width: 719px) {
    .cm-editor.cm-both {
      --gutter: calc(var(--number) + var(--sign));
    }
    .cm-editor .cm-scroller .cm-oldNumbers,
    .cm-editor .cm-deletedLine .number:nth-child(2) {
      display: none !important;
    }
    .cm-editor .cm-scroller .cm-deletedLine {
      grid-template-columns: var(--number) var(--sign) minmax(0, 1fr);
    }
    .cm-editor .cm-gutter .cm-gutterElement:not(.cm-signs *),
    .cm-editor .cm-deletedLine .number {
      font-size: 11.5px;
      padding-right: 6px;
    }
    .cm-editor .cm-scroller .cm-line,
    .cm-editor .cm-deletedLine .text {
      padding-right: 8px;
    }
    .cm-editor .cm-lineNumbers :is(.cm-g-added, .cm-g-mine, .cm-g-kept)::before {
      content: "";
      position: absolute;
      inset: 0 auto 0 0;
      width: 3px;
      background: var(--add-bar);
    }
    .cm-editor .cm-lineNumbers .cm-g-mine::before {
      width: 6px;
      background: none;
      border-inline: 2px solid var(--mine);
    }
    .cm-editor .cm-lineNumbers .cm-g-kept::before {
      background: var(--control);
    }
  }
  @media (max-width: 719px), (pointer: coarse) {
    .cm-editor .cm-scroller .cm-unfold {
      min-height: 44px;
    }
    .cm-editor .cm-comment button {
      min-height: 44px;
      font: 500 14px/18px var(--font-ui);
      padding: 3px 14px;
    }
    .cm-editor .cm-comment textarea {
      font-size: 16px;
    }
    .cm-hunk .hb {
      width: 44px;
      height: 44px;
    }
    .cm-editor .cm-scroller .cm-fold {
      height: 44px;
    }
  }
  /* Lines are broken, so that movement to the sides is left to swipes. */
  .cm-editor .cm-scroller {
    touch-action: pan-y pinch-zoom;
  }
  /* what the swipe of a finger would do if it ended now */
  .hb.near {
    outline: 2px solid var(--accent);
    outline-offset: -3px;
  }
  /* on a phone the choice is a switch below the hunk */
  .cm-switch,
  .stick {
    display: none;
  }
  @media (max-width: 719px) {
    .cm-hunk .hb,
    .cm-hunk .cm-hunkState {
      display: none;
    }
    .cm-hunk .of {
      margin-left: auto;
    }
    .cm-switch,
    .stick:not([hidden]) {
      display: block;
    }
    .cm-switch {
      margin-left: calc(-1 * var(--gutter));
      padding: 10px 16px;
      background: var(--surface);
      white-space: normal;
    }
    .stick {
      position: sticky;
      bottom: 0;
      height: 0;
      z-index: 2;
    }
    .stick > div {
      position: absolute;
      inset: auto 0 0 0;
      padding: 10px 16px;
      background: var(--surface);
      border-top: 1px solid var(--line);
      box-shadow: var(--sh-2);
    }
    /* Above a keyboard the lines have all of the little height. */
    @media (max-height: 560px) and (pointer: coarse) {
      .stick:not([hidden]) {
        display: none;
      }
    }
    .seg {
      display: grid;
      grid-template-columns: 1fr 1fr;
      border: 1px solid var(--line-2);
      border-radius: 10px;
      overflow: hidden;
      background: var(--surface);
    }
    .seg .hb {
      width: auto;
      height: 44px;
      display: flex;
      align-items: center;
      justify-content: center;
      gap: 6px;
      border: 0;
      border-radius: 0;
    }
    .seg .hb + .hb {
      border-left: 1px solid var(--line-2);
    }
    .seg .hb span {
      position: static;
      width: auto;
      height: auto;
      clip-path: none;
    }
    .seg .hb:focus-visible {
      outline-offset: -3px;
    }
  }
  @media (forced-colors: active) {
    .cm-editor .cm-gutter :is(.cm-g-added, .cm-g-kept)::before,
    .cm-editor .cm-scroller .cm-filler.cm-row::before {
      forced-color-adjust: none;
      background: Highlight;
    }
    .cm-editor .cm-gutter .cm-g-kept::before {
      background: GrayText;
    }
    .cm-editor .cm-gutter .cm-g-removed::before,
    .cm-editor .cm-deletedLine::before,
    .cm-merge-a .cm-scroller .cm-filler.cm-row::before {
      forced-color-adjust: none;
      background: repeating-linear-gradient(CanvasText 0 4px, Canvas 4px 7px);
    }
    .cm-editor .cm-scroller .cm-changedText {
      text-decoration: underline solid 2px;
      text-underline-offset: 2px;
    }
    .cm-merge-a .cm-scroller .cm-changedText,
    .cm-editor .cm-scroller .cm-deletedLine mark {
      background: none;
      color: CanvasText;
      text-decoration: underline dashed 2px;
      text-underline-offset: 2px;
    }
    .cm-editor .cm-scroller .cm-filler.cm-void {
      forced-color-adjust: none;
      background: repeating-linear-gradient(135deg, Canvas 0 6px, GrayText 6px 7px);
    }
    .nk {
      border-block: 2px dotted CanvasText;
    }
    .nk.yes {
      border-block: 2px solid Highlight;
    }
    .nk.no {
      border-block: 0;
    }
    .hb[aria-pressed="true"] {
      forced-color-adjust: none;
      background: Highlight;
      color: HighlightText;
      border-color: Highlight;
    }
  }
`;
