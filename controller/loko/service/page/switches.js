// Each switch's use against its allocation, whatever the scheme counts.

import { byId, html, reconcile, say, set } from "./dom.js";
import { stateText } from "./topology.js";
import { milliseconds, percent, share } from "./units.js";

export class SwitchList {
  constructor(choose) {
    this.choose = choose;
    this.list = byId("switch-list");
    this.kept = new Map();
  }

  update({ switches, chosen, limiting }) {
    this.chosen = chosen;
    this.limiting = limiting;
    this.kept = reconcile(this.list, this.kept, switches, (one) => one.name, (one) => this.card(one.name));
  }

  card(name) {
    const part = { state: html("span"), bound: html("p", { class: "muted" }), bars: html("dl", { class: "bars" }) };
    part.pick = html("button", { type: "button", class: "pick", "aria-pressed": "false" }, name);
    part.pick.addEventListener("click", () => this.choose("switch", name));
    part.note = html("p", { class: "warning" });
    part.shares = new Map();
    part.node = html(
      "li", { class: "switch" }, html("h3", {}, part.pick, " ", part.state), part.bound, part.bars, part.note,
    );
    part.node.dataset.switch = name;
    part.update = (one) => this.fill(part, one);
    return part;
  }

  fill(part, one) {
    const isAway = one.state === "away";
    say(part.state, stateText(one));
    set(part.state, { class: `badge ${isAway ? "bad" : one.complete ? "good" : "busy"}` });
    say(part.bound, `delays each frame by at most ${milliseconds(one.delay_ns)}`);
    const isChosen = this.chosen?.kind === "switch" && this.chosen.name === one.name;
    part.node.classList.toggle("chosen", isChosen);
    part.node.classList.toggle("limiting", this.limiting === one.name);
    set(part.pick, { "aria-pressed": String(isChosen) });
    part.shares = reconcile(part.bars, part.shares, one.use, (use) => use.quantity, bar);
    const notes = notesOf(one);
    part.note.hidden = !notes.length;
    say(part.note, notes.join(". "));
  }
}

/** What is amiss at a switch: entries of others, cables without a link, cables that should not be there. */
function notesOf(one) {
  const others = one.foreign_entries.length;
  const notes = [];
  if (others) {
    const whose = others === 1 ? "1 entry of somebody else" : `${others} entries of others`;
    notes.push(`${whose} in its table${one.exceeds_planned_entries ? "; with them it is fuller than planned" : ""}`);
  }
  const ports = (numbers) => `port${numbers.length === 1 ? "" : "s"} ${numbers.join(", ")}`;
  if (one.down_ports.length) notes.push(`No link at ${ports(one.down_ports)}`);
  if (one.unexpected_ports.length) notes.push(`A cable that the lab does not have at ${ports(one.unexpected_ports)}`);
  return notes;
}

function bar(use) {
  const filling = html("div", { class: "filling" });
  const text = html("dd");
  const meter = html("div", { class: "meter", role: "meter", "aria-valuemin": 0, "aria-valuemax": 100 }, filling);
  const node = html("div", {}, html("dt", {}, use.quantity), text, meter);
  node.dataset.quantity = use.quantity;
  return {
    node,
    update(now) {
      const words = share(now.used, now.allowed, now.unit);
      say(text, words);
      filling.style.width = `${Math.min(now.fraction, 1) * 100}%`;
      filling.classList.toggle("high", now.fraction > 0.9);
      set(meter, {
        "aria-label": `${now.quantity}: ${words}`,
        "aria-valuenow": Math.round(Math.min(now.fraction, 1) * 100),
        "aria-valuetext": percent(now.fraction),
      });
    },
  };
}
