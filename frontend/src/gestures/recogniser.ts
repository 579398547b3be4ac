// Gestures of one finger, from what is told of pointers. Pure: time comes with each event.

/** Something that a pointer does; places in px of the window, times in ms. */
export interface Touch {
  type: "down" | "move" | "up" | "cancel" | "menu";
  id: number;
  x: number;
  y: number;
  at: number;
}

/** A gesture, with the place where it began. `reach` tells where a swipe would lead if the finger left now. */
export type Gesture =
  | { kind: "swipe"; direction: Direction; x: number; y: number }
  | { kind: "reach"; direction: Direction | undefined; x: number; y: number }
  | { kind: "press"; x: number; y: number }
  | { kind: "double"; x: number; y: number };

export type Direction = "left" | "right";

/** Distance in px from which a finger has moved. */
export const SLOP = 10;
/** Least length of a swipe in px. */
export const LENGTH = 72;
/** How far in px a swipe may stray from its line. */
export const STRAY = 40;
/** Time in ms after which a finger that rests is a long press. */
export const HOLD_MS = 500;
/** Longest time in ms between two taps of one gesture, and their distance in px. */
export const DOUBLE_MS = 300;
export const DOUBLE_PX = 24;
/** Width in px of the borders of the window, where swipes belong to the system: they lead back. */
export const EDGE = 24;

type State =
  | { name: "idle" }
  | { name: "touched"; from: Touch; isHeld: boolean }
  | { name: "swiping"; from: Touch; reach: Direction | undefined }
  /** It was no gesture; nothing is one until all fingers have left. */
  | { name: "spoiled" };

/**
 * Recognises gestures. Movement up or down is a scroll, and two fingers are a zoom: neither becomes a gesture any more. A
 * finger that moves after it has rested selects text.
 */
export class Recogniser {
  #state: State = { name: "idle" };
  #fingers = new Set<number>();
  #tap: Touch | undefined;

  /** Take an event in a window of `width` px; return the gesture that it completes. */
  take(touch: Touch, width: number): Gesture | undefined {
    switch (touch.type) {
      case "down":
        this.#down(touch);
        return undefined;
      case "move":
        return this.#fingers.has(touch.id) ? this.#move(touch, width) : undefined;
      case "menu":
        // The system has recognised a long press itself, and may tell no more of this finger.
        if (this.#state.name === "touched") this.#state.isHeld = true;
        return undefined;
      case "up":
      case "cancel":
        return this.#fingers.delete(touch.id) ? this.#end(touch) : undefined;
    }
  }

  /** Take all fingers for lifted, also where no event said so: what they touched may have left the page. */
  reset(): void {
    this.#fingers.clear();
    this.#state = { name: "idle" };
  }

  /** Forget what has begun, e.g. since something else was shown under the finger. */
  spoil(): void {
    this.#tap = undefined;
    this.#state = this.#fingers.size ? { name: "spoiled" } : { name: "idle" };
  }

  #down(touch: Touch): void {
    const isAlone = !this.#fingers.size;
    this.#fingers.add(touch.id);
    if (isAlone) this.#state = { name: "touched", from: touch, isHeld: false };
    else this.spoil();
  }

  #move(touch: Touch, width: number): Gesture | undefined {
    const state = this.#state;
    if (state.name === "touched") {
      const [dx, dy] = [Math.abs(touch.x - state.from.x), Math.abs(touch.y - state.from.y)];
      if (Math.hypot(dx, dy) <= SLOP) return undefined;
      const { from } = state;
      const isAtEdge = from.x < EDGE || from.x > width - EDGE;
      const isHeld = state.isHeld || touch.at - from.at >= HOLD_MS;
      if (isHeld || isAtEdge || dx < 2 * dy) {
        this.spoil();
        return undefined;
      }
      this.#tap = undefined;
      this.#state = { name: "swiping", from, reach: undefined };
    }
    return this.#state.name === "swiping" ? this.#swipe(this.#state, touch) : undefined;
  }

  #swipe(state: Extract<State, { name: "swiping" }>, touch: Touch): Gesture | undefined {
    const { from, reach: before } = state;
    const isAstray = Math.abs(touch.y - from.y) > STRAY;
    const reach = isAstray ? undefined : reachOf(touch.x - from.x);
    if (isAstray) this.spoil();
    else state.reach = reach;
    return reach === before ? undefined : { kind: "reach", direction: reach, x: from.x, y: from.y };
  }

  #end(touch: Touch): Gesture | undefined {
    const state = this.#state;
    if (!this.#fingers.size) this.#state = { name: "idle" };
    if (state.name === "swiping") {
      const { x, y } = state.from;
      // The place where the finger leaves counts, too: it may be the first that is told.
      const direction = Math.abs(touch.y - y) > STRAY ? undefined : reachOf(touch.x - x);
      if (touch.type === "up" && direction) return { kind: "swipe", direction, x, y };
      return state.reach ? { kind: "reach", direction: undefined, x, y } : undefined;
    }
    return state.name === "touched" ? this.#rested(state, touch) : undefined;
  }

  /** A finger has left that has not moved. */
  #rested({ from, isHeld }: Extract<State, { name: "touched" }>, touch: Touch): Gesture | undefined {
    const tap = this.#tap;
    this.#tap = undefined;
    const { x, y } = from;
    if (isHeld) return { kind: "press", x, y };
    if (touch.type === "cancel" || Math.hypot(touch.x - x, touch.y - y) > SLOP) return undefined;
    if (touch.at - from.at >= HOLD_MS) return { kind: "press", x, y };
    if (tap && from.at - tap.at <= DOUBLE_MS && Math.hypot(tap.x - x, tap.y - y) <= DOUBLE_PX)
      return { kind: "double", x, y };
    this.#tap = touch;
    return undefined;
  }
}

function reachOf(distance: number): Direction | undefined {
  return Math.abs(distance) < LENGTH ? undefined : distance < 0 ? "left" : "right";
}
