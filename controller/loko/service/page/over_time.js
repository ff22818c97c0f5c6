// A flow's delays over the last minutes: the band from the least to the most, the mean, the guarantee, and losses.

import { html, say, set, svg } from "./dom.js";
import { count, milliseconds } from "./units.js";

const EVERY_MS = 1000;
const WIDTH = 300;
const HEIGHT = 90;
const FOOT = 82;
const REACH = 1.15; // The scale ends here, in guarantees.
const LENGTHS_S = [30, 60, 120, 300];

export class OverTime {
  constructor() {
    this.flow = null;
    this.band = svg("g", { class: "band" });
    this.mean = svg("path", { class: "mean" });
    this.lost = svg("g", { class: "lost" });
    this.bound = svg("line", { class: "bound", x1: 0, x2: WIDTH, y1: place(1), y2: place(1) });
    this.drawing = svg(
      "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
      this.band, this.mean, this.lost, this.bound,
    );
    this.from = html("span");
    this.most = html("span");
    this.node = html(
      "figure", { class: "over-time" },
      html("figcaption", { class: "muted" }, "Delays over time ", this.most),
      this.drawing,
      html("div", { class: "axis muted" }, this.from, html("span", {}, "now")),
    );
  }

  /** Follow another flow, or none. */
  follow(flow) {
    if (flow?.id === this.flow?.id) {
      this.flow = flow;
      return;
    }
    this.flow = flow;
    clearTimeout(this.timer);
    this.show({ spans: [], span_ns: 1e9, guarantee_ns: flow?.guarantee_ns ?? 1 });
    if (flow) this.ask();
  }

  async ask() {
    const { id } = this.flow;
    try {
      const response = document.hidden ? null : await fetch(`/v1/flows/${encodeURIComponent(id)}/delays`);
      if (response?.ok && this.flow?.id === id) this.show(await response.json());
    } catch {
      // The service is away, and the page says so elsewhere.
    }
    if (this.flow?.id === id) this.timer = setTimeout(() => this.ask(), EVERY_MS);
  }

  show({ spans, span_ns: spanNs, guarantee_ns: guaranteeNs }) {
    const oldest = Math.max(0, ...spans.map((span) => span.ago_ns)) / 1e9;
    const length = LENGTHS_S.find((seconds) => seconds >= oldest) ?? LENGTHS_S.at(-1);
    const x = (span) => WIDTH * (1 - span.ago_ns / 1e9 / length);
    const width = (WIDTH * spanNs) / 1e9 / length;
    const seen = spans.filter((span) => span.received > 0 && x(span) >= -width);
    this.band.replaceChildren(
      ...seen.map((span) => {
        const [top, foot] = [place(span.max_ns / guaranteeNs), place(span.min_ns / guaranteeNs)];
        const isLate = span.max_ns > guaranteeNs;
        return svg("rect", { x: x(span), y: top, width, height: Math.max(1.5, foot - top), class: isLate ? "late" : null });
      }),
    );
    let last = null;
    const d = seen.map((span) => {
      const follows = last !== null && last.ago_ns - span.ago_ns < 1.5 * spanNs;
      last = span;
      return `${follows ? "L" : "M"}${(x(span) + width / 2).toFixed(1)} ${place(span.mean_ns / guaranteeNs).toFixed(1)}`;
    }).join("");
    set(this.mean, { d });
    this.lost.replaceChildren(
      ...spans.filter((span) => span.lost > 0).map((span) => svg("rect", { x: x(span), y: FOOT + 2, width, height: HEIGHT - FOOT - 2 })),
    );
    const most = seen.reduce((sofar, span) => Math.max(sofar, span.max_ns), 0);
    const lost = spans.reduce((sum, span) => sum + span.lost, 0);
    say(this.from, length >= 60 ? `${length / 60} min ago` : `${length} s ago`);
    say(this.most, seen.length ? `(at most ${milliseconds(most)}, ${count(lost)} lost)` : "(nothing measured yet)");
    set(this.drawing, {
      "aria-label": `Delays over time: ${seen.length ? `at most ${milliseconds(most)} in the last ${length} s, ${count(lost)} lost` : "nothing measured yet"}`,
    });
  }
}

/** Where a delay lies, in guarantees. */
function place(part) {
  return FOOT * (1 - Math.min(part, REACH) / REACH);
}
