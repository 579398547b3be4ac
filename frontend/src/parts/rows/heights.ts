/** The heights of the items of a list, and their sums. Each change costs the logarithm of their number. */
export class Heights {
  #own: number[] = [];
  /** A Fenwick tree, from index 1: sums of heights over ranges whose lengths are powers of two. */
  #tree: number[] = [0];

  get length(): number {
    return this.#own.length;
  }

  get total(): number {
    return this.offset(this.length);
  }

  push(height: number): void {
    const at = this.#tree.length;
    this.#own.push(height);
    let sum = height;
    for (let below = at - 1; below > at - (at & -at); below -= below & -below) sum += this.#tree[below] ?? 0;
    this.#tree.push(sum);
  }

  set(index: number, height: number): void {
    const change = height - (this.#own[index] ?? 0);
    this.#own[index] = height;
    for (let at = index + 1; at < this.#tree.length; at += at & -at) this.#tree[at] = (this.#tree[at] ?? 0) + change;
  }

  get(index: number): number {
    return this.#own[index] ?? 0;
  }

  /** Return the sum of the heights before an index. */
  offset(index: number): number {
    let sum = 0;
    for (let at = Math.min(index, this.length); at > 0; at -= at & -at) sum += this.#tree[at] ?? 0;
    return sum;
  }

  /** Return the index of the item at a distance from the top, of the last one if there is none so far down. */
  at(distance: number): number {
    let index = 0;
    let left = distance;
    for (let step = 2 ** Math.floor(Math.log2(this.length || 1)); step >= 1; step /= 2) {
      const next = index + step;
      if (next <= this.length && (this.#tree[next] ?? 0) <= left) {
        index = next;
        left -= this.#tree[next] ?? 0;
      }
    }
    return Math.max(0, Math.min(index, this.length - 1));
  }
}
