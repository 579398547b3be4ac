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
    grid-template-columns: 72px 40px 24px minmax(0, 1fr);
    line-height: 20px;
    position: relative;
  }
  .long .row:not(:has(.number + .number)) {
    grid-template-columns: 56px 20px minmax(0, 1fr);
  }
  .long .row.note {
    display: block;
    padding-left: 136px;
  }
  .long .number {
    color: var(--text-3);
    font-size: 12px;
    text-align: right;
    padding-right: 8px;
    user-select: none;
    font-variant-numeric: tabular-nums;
  }
  .long .sign {
    text-align: center;
    font-weight: 500;
    user-select: none;
  }
  .long .text {
    white-space: pre-wrap;
    overflow-wrap: anywhere;
    padding-right: 12px;
  }
  .long .added {
    background: var(--add-bg);
  }
  .long .removed {
    background: var(--del-bg);
  }
  .long .added :is(.number, .sign) {
    color: var(--add);
  }
  .long .removed :is(.number, .sign) {
    color: var(--del);
  }
  .long :is(.added, .removed)::before {
    content: "";
    position: absolute;
    inset: 0 auto 0 0;
    width: 3px;
    background: var(--add-bar);
    forced-color-adjust: none;
  }
  .long .removed::before {
    background: repeating-linear-gradient(var(--del-bar) 0 4px, transparent 4px 7px);
  }
  .long mark {
    color: inherit;
    background: var(--add-word);
    border-radius: 2px;
    box-shadow: inset 0 -1.5px var(--add-bar);
    text-decoration: underline solid transparent;
  }
  .long .removed mark {
    background: var(--del-word);
    box-shadow: none;
    border-bottom: 1.5px dashed var(--del-bar);
  }
  @media (max-width: 719px) {
    .long .row:has(.number + .number) {
      grid-template-columns: 40px 18px minmax(0, 1fr);
    }
    .long .number:has(+ .number):empty,
    .long .number + .number:empty,
    .long .same .number:has(+ .number) {
      display: none;
    }
    .long .row.note {
      padding-left: 58px;
    }
  }
  .long .said {
    position: absolute;
    width: 1px;
    height: 1px;
    overflow: hidden;
    clip-path: inset(50%);
  }
`;
