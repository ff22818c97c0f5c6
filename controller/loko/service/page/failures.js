// The failures that flows survive, and faults in an emulated lab: a cable pulled or plugged in again, a switch rebooted.

import { byId, html, say, set } from "./dom.js";
import { cableName } from "./units.js";

const MOST_REASONS = 3;

export class Failures {
  /** `call(method, path)` asks the service, with the token if there is one. */
  constructor({ service, topology, call }) {
    this.call = call;
    this.pulled = new Set();
    this.answer = byId("fault-answer");
    this.cable = byId("fault-cable");
    this.switch = byId("fault-switch");
    byId("return").addEventListener("click", () => this.act("POST", "/v1/protection/return", "flows return"));
    byId("faults").hidden = !service.emulates;
    if (!service.emulates) return;
    this.cable.append(...topology.links.map((link) => html("option", {}, cableName(link))));
    this.cable.addEventListener("change", () => this.show());
    byId("fault-toggle").addEventListener("click", () => this.toggle());
    byId("fault-reboot").addEventListener("click", () => {
      const name = this.switch.value;
      this.act("POST", `/v1/emulation/switches/${encodeURIComponent(name)}/reboot`, `${name} reboots`);
    });
    this.load().then((restartable) => this.offer(restartable));
  }

  /** Offers to reboot these switches. */
  offer(restartable) {
    this.switch.append(...restartable.map((name) => html("option", {}, name)));
    for (const id of ["restartable", "fault-reboot"]) byId(id).hidden = !restartable.length;
  }

  /** `protection` is null where no flow survives failures. */
  update({ protection }) {
    byId("protection").hidden = !protection;
    if (!protection) return;
    const { failures, uncovered, on_backup: moved, returns } = protection;
    const more = uncovered.length - MOST_REASONS;
    const reasons = [...uncovered.slice(0, MOST_REASONS), ...(more > 0 ? [`${more} more`] : [])];
    const count = failures.length === 1 ? "1 failure is" : `${failures.length} failures are`;
    say(byId("coverage"), uncovered.length
      ? `Not covered until repaired: ${reasons.join("; ")}`
      : `${count} covered, one at a time`);
    set(byId("coverage"), { class: `badge ${uncovered.length ? "busy" : "good"}` });
    byId("return").hidden = returns !== "by-call" || !moved.length;
  }

  /** Learns which cables are out. Returns the switches that can be rebooted. */
  async load() {
    const response = await fetch("/v1/emulation");
    const { pulled, restartable } = response.ok ? await response.json() : { pulled: this.pulled, restartable: [] };
    this.pulled = new Set(pulled);
    this.show();
    return restartable;
  }

  async toggle() {
    const name = this.cable.value;
    const isOut = this.pulled.has(name);
    const path = `/v1/emulation/cables/${encodeURIComponent(name)}/${isOut ? "plug" : "pull"}`;
    await this.act("POST", path, `${name} is ${isOut ? "plugged in again" : "pulled out"}`);
    await this.load();
  }

  async act(method, path, done) {
    const response = await this.call(method, path);
    say(this.answer, response.ok ? done : (await response.json()).error.message);
  }

  show() {
    say(byId("fault-toggle"), this.pulled.has(this.cable.value) ? "Plug it in again" : "Pull this cable");
    const out = [...this.pulled].sort();
    say(byId("pulled"), out.length ? `Pulled out: ${out.join(", ")}` : "");
  }
}
