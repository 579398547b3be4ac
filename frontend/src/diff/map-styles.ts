// The styles of the map of a long change.

import { css } from "lit";

export const MAP_STYLES = css`
  :host([mapped]) {
    padding-right: 12px;
  }
  .map-place {
    display: none;
    position: sticky;
    height: 0;
    z-index: 2;
  }
  :host([mapped]) .map-place {
    display: block;
  }
  .map {
    position: absolute;
    right: -12px;
    top: 0;
    width: 12px;
    box-sizing: border-box;
    border-left: 1px solid var(--line);
    background: var(--bg);
  }
  .map i {
    position: absolute;
    left: 3px;
    right: 2px;
    height: 5px;
    border-radius: 1px;
    background: var(--control);
  }
  .map .seen {
    background: var(--line-2);
  }
  .map .at {
    background: var(--accent);
  }
  .map u {
    position: absolute;
    left: 0;
    right: 0;
    box-sizing: border-box;
    border: 1px solid var(--control);
    border-right: 0;
    border-radius: 2px;
    pointer-events: none;
  }
  @media (forced-colors: active) {
    .map i {
      background: CanvasText;
    }
    .map .at {
      background: Highlight;
    }
  }
`;
