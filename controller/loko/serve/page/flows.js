// The list of flows: path, guarantee, measured delays, and a button that releases each.

import { byId, html, reconcile, say, set } from "./dom.js";
import { Strip } from "./strip.js";
import { nodesOf } from "./topology.js";
import { milliseconds, quantity, rate, turnText } from "./units.js";

const WORDS = { accepted: "being installed", installed: "installed", removing: "being removed" };

export class FlowList {
  /** `choose(kind, name)` when one is picked, `release(id)` when it is to go. */
  constructor({ choose, release }) {
    this.choose = choose;
    this.release = release;
    this.kept = new Map();
    this.list = byId("flow-list");
  }

  update({ flows, delays, chosen }) {
    this.delays = delays;
    this.chosen = chosen;
    byId("no-flows").hidden = flows.length > 0;
    const number = flows.length ? ` (${flows.length})` : "";
    say(byId("flows-title"), `Flows${number}`);
    this.kept = reconcile(this.list, this.kept, flows, (flow) => flow.id, (flow) => this.row(flow.id));
  }

  /** Only the delays are new. */
  measured(delays) {
    this.delays = delays;
    for (const [id, part] of this.kept) part.strip.update(part.flow, delays[id]);
  }

  row(id) {
    const part = { strip: new Strip(), state: html("span"), path: html("span"), bucket: html("p", { class: "muted" }) };
    part.pick = html("button", { type: "button", class: "pick", "aria-pressed": "false" }, id);
    part.pick.addEventListener("click", () => this.choose("flow", id));
    const advice = "Stop its sender first: what it sends afterwards is lost.";
    part.remove = html("button", { type: "button", class: "quiet", "aria-label": `Release ${id}`, title: advice }, "Release");
    part.remove.addEventListener("click", () => this.release(id, part.remove));
    part.guarantee = html("strong");
    part.node = html(
      "li",
      { class: "flow" },
      html(
        "div",
        { class: "what" },
        html("h3", {}, part.pick, " ", part.state),
        html("p", {}, part.path),
        part.bucket,
      ),
      html("p", { class: "guarantee" }, "at most ", part.guarantee),
      part.strip.node,
      part.remove,
    );
    part.node.dataset.flow = id;
    part.update = (flow) => this.fill(part, flow);
    return part;
  }

  fill(part, flow) {
    part.flow = flow;
    const isWaiting = flow.waiting_for.length > 0;
    const words = WORDS[flow.state] ?? flow.state;
    const isInterrupted = flow.state === "installed" && isWaiting;
    say(part.state, isInterrupted ? `interrupted at ${flow.waiting_for.join(", ")}` : words);
    set(part.state, { class: `badge ${isInterrupted ? "bad" : flow.state === "installed" ? "good" : "busy"}` });
    say(part.path, nodesOf(flow).join(" › "));
    const burst = quantity(flow.burst_bytes, "bytes");
    const sends = flow.turn ? turnText(flow.turn) : `${rate(flow.rate_bps)}, burst ${burst}`;
    say(part.bucket, `${sends}, frames of ${flow.frame_bytes} bytes`);
    say(part.guarantee, milliseconds(flow.guarantee_ns));
    set(part.pick, { "aria-pressed": String(this.chosen?.kind === "flow" && this.chosen.name === flow.id) });
    part.node.classList.toggle("interrupted", isInterrupted);
    part.node.classList.toggle(
      "chosen",
      (this.chosen?.kind === "flow" && this.chosen.name === flow.id) ||
        (this.chosen?.kind === "switch" && flow.path.some((hop) => hop.switch === this.chosen.name)),
    );
    part.strip.update(flow, this.delays[flow.id]);
  }
}
