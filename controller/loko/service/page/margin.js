// How much slower than planned the switches may be, of the flows of now: asked for anew when these change.

import { byId, say } from "./dom.js";

const EVERY_MS = 2000;

export class Margin {
  constructor() {
    this.part = byId("margin");
    this.flows = [];
    this.shown = null;
    this.ask();
  }

  /** Note the flows of now. */
  update({ flows }) {
    this.flows = flows;
    this.part.hidden = !flows.length;
  }

  /** At most one request at a time: the service computes the margin anew for each set of flows. */
  async ask() {
    const asked = JSON.stringify(this.flows.map((flow) => [flow.id, flow.rate_bps, flow.burst_bytes, flow.path]));
    if (this.flows.length && asked !== this.shown && !document.hidden) {
      try {
        const response = await fetch("/v1/margin");
        if (response?.ok) {
          const { slower_ppm: slower, text } = await response.json();
          say(this.part, `Slower switches: ${text}.`);
          if (slower !== null) this.shown = asked; // else released flows may still count
        }
      } catch {
        // The service is away, and the page says so elsewhere.
      }
    }
    setTimeout(() => this.ask(), EVERY_MS);
  }
}
