// The chosen flow: its path switch by switch, what it may send, its delays beside the guarantee, now and over time.

import { byId, html, say, set } from "./dom.js";
import { standing } from "./flows.js";
import { Strip } from "./strip.js";
import { OverTime } from "./over_time.js";
import { milliseconds, quantity, rate, sendSlotText } from "./units.js";

/** The other paths of a flow that survives failures. */
function reservedText({ reserved, promised_ns: promised }) {
  if (reserved.second_copies) {
    const { path, udp_source: port } = reserved.second_copies;
    const faults = reserved.on_one_path.map(({ text }) => text).join("; ");
    return `${faults && `On one path: ${faults}. `}Sent twice: second copies from UDP port ${port} by ${path.join(" › ")}`;
  }
  const bound = `at most ${milliseconds(promised)} on every reserved path`;
  if (reserved.on_backup) return `On a backup path; its working path is ${reserved.working.join(" › ")}; ${bound}`;
  const paths = new Set(reserved.backups.map(({ path }) => path.join(" › ")));
  return paths.size ? `Backup: ${[...paths].join("; ")}; ${bound}` : "No failure that is covered hits its path";
}

export class Detail {
  /** `choose(kind, name)`, `release(flow)`; `measures` is null where nothing measures delays. */
  constructor({ choose, release, measures }) {
    Object.assign(this, { choose, release });
    this.flow = null;
    this.strip = new Strip({ numbers: true });
    this.overTime = measures ? new OverTime() : null;
    this.name = html("h3");
    this.state = html("span");
    this.broken = html("ul", { class: "warning" });
    this.path = html("ol", { class: "hops" });
    this.sends = html("p", { class: "muted" });
    this.reserved = html("p", { class: "muted" });
    this.guarantee = html("strong");
    const close = html("button", { type: "button", class: "quiet" }, "Close");
    close.addEventListener("click", () => this.choose("flow", this.flow.id));
    const remove = html("button", { type: "button", class: "quiet" }, "Release");
    remove.addEventListener("click", () => this.release(this.flow));
    this.buttons = [close, remove];
    this.node = html(
      "div", {},
      html("div", { class: "head" }, this.name, this.state),
      html("p", { class: "guarantee" }, "at most ", this.guarantee),
      this.broken, this.path, this.reserved, this.sends, this.strip.node,
      ...(this.overTime ? [this.overTime.node] : []),
      html("div", { class: "buttons" }, remove, close),
    );
    this.hint = byId("no-detail");
    byId("detail").append(this.node);
    this.node.hidden = true;
  }

  update({ flows, delays, chosen }) {
    const flow = chosen?.kind === "flow" ? flows.find(({ id }) => id === chosen.name) : undefined;
    this.node.hidden = !flow;
    this.hint.hidden = Boolean(flow);
    byId("detail").classList.toggle("is-empty", !flow);
    this.overTime?.follow(flow ?? null);
    if (!flow) {
      this.flow = null;
      return;
    }
    if (flow !== this.flow) this.fill(flow);
    this.flow = flow;
    this.strip.update(flow, delays[flow.id]);
  }

  measured(delays) {
    if (this.flow) this.strip.update(this.flow, delays[this.flow.id]);
  }

  fill(flow) {
    const state = standing(flow);
    say(this.name, flow.id);
    say(this.state, state.text);
    set(this.state, { class: state.class });
    say(this.guarantee, milliseconds(flow.guarantee_ns));
    this.reserved.hidden = !flow.reserved;
    say(this.reserved, flow.reserved ? reservedText(flow) : "");
    this.broken.hidden = !flow.broken.length;
    this.broken.replaceChildren(...flow.broken.map(({ text, since_ms: since }) =>
      html("li", {}, `${text}, since ${new Date(since).toLocaleTimeString()}`)));
    const burst = quantity(flow.burst_bytes, "bytes");
    const sends = flow.send_slot ? sendSlotText(flow.send_slot) : `${rate(flow.rate_bps)}, burst ${burst}`;
    const inClass = flow.traffic_class > 1 ? `class ${flow.traffic_class}, ` : "";
    say(this.sends, `${inClass}${sends}, frames of ${flow.frame_bytes} bytes, UDP ${flow.udp_source} to ${flow.udp_destination}`);
    set(this.buttons[1], { "aria-label": `Release ${flow.id}` });
    set(this.buttons[0], { "aria-label": `Close ${flow.id}` });
    this.path.replaceChildren(
      html("li", {}, flow.source),
      ...flow.path.map((hop) =>
        html("li", {}, html("strong", {}, hop.switch), ` at most ${milliseconds(hop.delay_ns)}`)),
      html("li", {}, flow.destination),
    );
  }
}
