// The styles of a change or text in parts.

import { css } from "lit";

export const LONG_STYLES = css`
  .long {
    font: var(--t-code) var(--font-code);
    font-variant-ligatures: none;
  }
  .long .fold,
  .long .head,
  .long .note {
    background: var(--bg);
    color: var(--text-2);
    font: var(--t-xs) var(--font-ui);
    padding: 6px 12px;
  }
  .long .head {
    color: var(--text);
    border-top: 1px solid var(--line);
  }
  .long .row {
    display: grid;
    grid-template-columns: 56px 20px minmax(0, 1fr);
    line-height: 20px;
  }
  .long .row.note {
    display: block;
  }
  .long .number {
    color: var(--text-3);
    text-align: right;
    padding-right: 8px;
    user-select: none;
  }
  .long .sign {
    user-select: none;
  }
  .long .text {
    white-space: pre-wrap;
    overflow-wrap: anywhere;
    padding-right: 12px;
  }
  .long .added {
    background: var(--add-bg);
    box-shadow: inset 3px 0 var(--add-bar);
  }
  .long .removed {
    background: var(--del-bg);
    box-shadow: inset 3px 0 var(--del-bar);
  }
  .long mark {
    color: inherit;
    background: var(--add-word);
    border-bottom: 1.5px solid var(--add-bar);
  }
  .long .removed mark {
    background: var(--del-word);
    border-bottom: 1.5px dashed var(--del-bar);
  }
  .long .said {
    position: absolute;
    width: 1px;
    height: 1px;
    overflow: hidden;
    clip-path: inset(50%);
  }
`;
