// A list of any length: only the rows that can be seen, and some beside them, are elements of the page.

import { set } from "./dom.js";

const BESIDE = 6;

export class WindowedList {
  /**
   * `list` is the list in the box `scroller`, all of whose rows are as high as `--row` says. `make(row)` gives a part
   * with a `node`, `focus()`, `update(row)` and `walk(isIn)`: whether the tabulator stops at it.
   */
  constructor({ scroller, list, make, kindOf }) {
    Object.assign(this, { scroller, list, make, kindOf });
    this.rows = [];
    this.places = new Map();
    this.parts = new Map();
    this.spare = new Map();
    this.current = null;
    this.isDue = false;
    scroller.addEventListener("scroll", () => this.drawSoon(), { passive: true });
    new ResizeObserver(() => this.measure()).observe(scroller);
    list.addEventListener("keydown", (event) => this.walk(event));
    list.addEventListener("focusin", (event) => this.entered(event.target));
    this.measure();
  }

  measure() {
    this.height = parseFloat(getComputedStyle(this.list).getPropertyValue("--row")) || 64;
    this.lastDrawn = null;
    this.show(this.rows);
  }

  /** Show other rows, or the same with other contents. */
  show(rows) {
    const held = this.focused();
    const before = held && this.places.get(held);
    this.rows = rows;
    this.places = new Map(rows.map(({ key }, index) => [key, index]));
    this.list.style.height = `${rows.length * this.height}px`;
    if (!this.places.has(this.current)) {
      const place = Math.min(before ?? 0, rows.length - 1);
      this.current = rows[place]?.key ?? null;
    }
    this.draw();
    // Where a row is gone that had the focus, the one in its place gets it.
    if (held && !this.places.has(held) && this.current) this.focus(this.places.get(this.current));
  }

  focused() {
    const node = document.activeElement?.closest?.("[data-key]");
    return node && this.list.contains(node) ? node.dataset.key : null;
  }

  drawSoon() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.draw();
    });
  }

  /** Which rows are to be there: those in sight, some beside them, and the one that the tabulator comes to. */
  wanted() {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / this.height) - BESIDE);
    const number = Math.ceil(this.scroller.clientHeight / this.height) + 2 * BESIDE;
    const wanted = new Map(this.rows.slice(first, first + number).map((row, index) => [row.key, first + index]));
    const here = this.places.get(this.current);
    if (here !== undefined) wanted.set(this.current, here);
    return wanted;
  }

  draw() {
    const wanted = this.wanted();
    const held = this.focused();
    for (const [key, part] of this.parts) {
      if (wanted.has(key)) continue;
      this.parts.delete(key);
      if (key === held) part.node.remove(); // as the focus would go with it to another row
      else this.lay(part);
    }
    for (const [key, index] of wanted) {
      const row = this.rows[index];
      let part = this.parts.get(key);
      if (!part) {
        part = this.taken(this.kindOf(row)) ?? this.make(row);
        part.kind = this.kindOf(row);
        part.row = null;
        this.parts.set(key, part);
        part.node.dataset.key = key;
        part.node.hidden = false;
        if (!part.node.isConnected) this.list.append(part.node);
      }
      part.update(row);
      if (part.index !== index || part.total !== this.rows.length || part.tall !== this.height) {
        Object.assign(part, { index, total: this.rows.length, tall: this.height });
        part.node.style.transform = `translateY(${index * this.height}px)`;
        set(part.node, { "aria-setsize": this.rows.length, "aria-posinset": index + 1 });
      }
      part.walk(key === this.current);
    }
  }

  lay(part) {
    part.node.hidden = true;
    delete part.node.dataset.key;
    delete part.node.dataset.flow;
    const spare = this.spare.get(part.kind) ?? [];
    this.spare.set(part.kind, [...spare, part]);
  }

  taken(kind) {
    return this.spare.get(kind)?.pop();
  }

  entered(node) {
    const key = node.closest("[data-key]")?.dataset.key;
    if (!key || key === this.current) return;
    const last = this.parts.get(this.current);
    this.current = key;
    last?.walk(false);
    this.parts.get(key)?.walk(true);
  }

  /** Up, down, to the ends: from row to row. */
  walk(event) {
    const here = this.places.get(this.focused());
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.height) - 1);
    const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (here === undefined || step === undefined) return;
    event.preventDefault();
    this.focus(Math.max(0, Math.min(this.rows.length - 1, here + step)));
  }

  focus(index) {
    this.reveal(index);
    this.current = this.rows[index].key;
    this.draw();
    this.parts.get(this.current).focus();
  }

  /** Scroll only as far as needed for a row to be seen. */
  reveal(index) {
    const [top, room] = [index * this.height, this.scroller.clientHeight];
    const at = this.scroller.scrollTop;
    if (top < at) this.scroller.scrollTop = top;
    else if (top + this.height > at + room) this.scroller.scrollTop = top + this.height - room;
  }
}
