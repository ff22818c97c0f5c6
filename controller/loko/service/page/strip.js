// A flow's measured delays beside its guarantee: a histogram over the switches' parts of the bound.

import { html, say, set, svg } from "./dom.js";
import { count, milliseconds } from "./units.js";

const WIDTH = 480;
const HEIGHT = 46;
const FLOOR = 38;
const REACH = 1.2; // The scale ends here, in guarantees.

export class Strip {
  /** Without `numbers` only the drawing, for a row of the list. */
  constructor({ numbers }) {
    this.parts = svg("g", { class: "hops" });
    this.bars = svg("g", { class: "bars" });
    this.span = svg("line", { class: "span", y1: FLOOR + 4, y2: FLOOR + 4, visibility: "hidden" });
    this.median = svg("line", { class: "median", y1: FLOOR, y2: FLOOR + 8, visibility: "hidden" });
    this.high = svg("line", { class: "high", y1: FLOOR, y2: FLOOR + 8, visibility: "hidden" });
    this.bound = svg("line", { class: "bound", x1: WIDTH / REACH, x2: WIDTH / REACH, y1: 0, y2: HEIGHT });
    this.drawing = svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
      this.parts, this.bars, this.span, this.median, this.high, this.bound,
    );
    this.numbers = html("dl", { class: "numbers" });
    this.values = new Map();
    for (const name of ["min", "p50", "p99", "max", "lost", "late", "packets"]) {
      const value = html("dd", {}, "–");
      this.values.set(name, value);
      const title = { packets: "received" }[name] ?? name;
      this.numbers.append(html("div", {}, html("dt", {}, title), value));
    }
    this.node = html("div", { class: "strip" }, this.drawing, ...(numbers ? [this.numbers] : []));
  }

  update(flow, measured) {
    const scale = WIDTH / ((flow.guarantee_ns ?? 1) * REACH);
    this.drawHops(flow, scale);
    if (!measured) {
      this.numbers.hidden = true;
      set(this.drawing, { "aria-label": `guarantee ${milliseconds(flow.guarantee_ns)}, nothing measured` });
      this.bars.replaceChildren();
      for (const mark of [this.span, this.median, this.high]) set(mark, { visibility: "hidden" });
      return;
    }
    this.numbers.hidden = false;
    this.drawBars(measured.histogram);
    const x = (ns) => Math.min(ns * scale, WIDTH - 1);
    const has = measured.received > 0;
    this.mark(this.span, has, { x1: x(measured.min_ns), x2: Math.max(x(measured.max_ns), x(measured.min_ns) + 2) });
    this.mark(this.median, has, { x1: x(measured.p50_ns), x2: x(measured.p50_ns) });
    this.mark(this.high, has, { x1: x(measured.p99_ns), x2: x(measured.p99_ns) });
    this.write(measured, has);
  }

  mark(line, has, places) {
    set(line, has ? { ...places, visibility: "visible" } : { visibility: "hidden" });
  }

  drawHops(flow, scale) {
    let from = 0;
    this.parts.replaceChildren(
      ...flow.path.map((hop, index) => {
        const width = hop.delay_ns * scale;
        const part = svg("rect", { x: from, y: 4, width, height: FLOOR - 4, class: index % 2 ? "odd" : "even" });
        part.append(svg("title", {}, `${hop.switch}: at most ${milliseconds(hop.delay_ns)}`));
        from += width;
        return part;
      }),
    );
  }

  drawBars({ counts }) {
    const most = Math.max(...counts, 1);
    const width = WIDTH / counts.length;
    this.bars.replaceChildren(
      ...counts.flatMap((number, index) => {
        if (!number) return [];
        const height = Math.max(2, (FLOOR - 4) * Math.sqrt(number / most));
        const late = index * width >= WIDTH / REACH - 0.001;
        return svg("rect", {
          x: index * width + 0.25, y: FLOOR - height, width: width - 0.5, height, class: late ? "late" : null,
        });
      }),
    );
  }

  write(measured, has) {
    for (const name of ["min", "p50", "p99", "max"]) {
      say(this.values.get(name), has ? milliseconds(measured[`${name}_ns`]) : "–");
    }
    say(this.values.get("lost"), count(measured.lost));
    say(this.values.get("late"), count(measured.late));
    say(this.values.get("packets"), count(measured.received));
    for (const name of ["lost", "late"]) this.values.get(name).classList.toggle("bad", measured[name] > 0);
    const delays = has
      ? `delays from ${milliseconds(measured.min_ns)} to ${milliseconds(measured.max_ns)}, half below ${milliseconds(measured.p50_ns)}`
      : "no packet received";
    const rest = `${count(measured.lost)} lost, ${count(measured.late)} late of ${count(measured.sent)} sent`;
    set(this.drawing, { "aria-label": `guarantee ${milliseconds(measured.guarantee_ns)}; ${delays}; ${rest}` });
  }
}
