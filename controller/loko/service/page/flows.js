// The list of flows: searched, sorted, grouped; of each its path, guarantee, measured delays, and a way to release it.

import { chosenFlows, rowsOf } from "./arrange.js";
import { byId, html, say, set } from "./dom.js";
import { Strip } from "./strip.js";
import { milliseconds, nodesOf } from "./units.js";
import { WindowedList } from "./window.js";

const WORDS = { accepted: "being installed", installed: "installed", removing: "being removed" };
const BY_MEASURES = new Set(["p99", "used", "lost"]);
const MOST_NODES = 6;

/** How a flow is: { text, class } of its badge. */
export function standing(flow) {
  if (flow.broken.length) {
    return { text: `broken at ${flow.broken.map(({ place }) => place).join(", ")}`, class: "badge bad" };
  }
  if (flow.reserved?.on_backup) return { text: "on backup", class: "badge busy" };
  if (flow.reserved?.on_one_path.length) return { text: "on one path", class: "badge busy" };
  const isIn = flow.state === "installed";
  return { text: WORDS[flow.state] ?? flow.state, class: `badge ${isIn ? "good" : "busy"}` };
}

/** A path in few words: the middle of a long one is left out. */
function shortPath(flow) {
  const nodes = nodesOf(flow);
  if (nodes.length <= MOST_NODES + 1) return nodes.join(" › ");
  return [...nodes.slice(0, 3), `${nodes.length - 5} more`, ...nodes.slice(-2)].join(" › ");
}

export class FlowList {
  /** `choose(kind, name)` when one is picked, `release(flow)` when it is to go. */
  constructor({ choose, release }) {
    Object.assign(this, { choose, release });
    this.state = { flows: [], delays: {}, chosen: null, through: null };
    this.closed = new Set();
    this.shown = [];
    this.tools = byId("flow-tools").elements;
    this.list = new WindowedList({
      scroller: byId("flow-scroll"),
      list: byId("flow-list"),
      kindOf: (row) => (row.flow ? "flow" : "group"),
      make: (row) => (row.flow ? this.row() : this.heading()),
    });
    byId("flow-tools").addEventListener("submit", (event) => event.preventDefault());
    for (const name of ["query", "order", "group"]) {
      const happens = name === "query" ? "input" : "change";
      this.tools[name].addEventListener(happens, () => this.arrange());
    }
    byId("fold").addEventListener("click", () => this.foldAll());
    byId("through").addEventListener("click", () => this.choose("through", null));
  }

  update(state) {
    this.state = state;
    this.arrange();
  }

  /** Only the delays are new. */
  measured(delays) {
    this.state.delays = delays;
    if (BY_MEASURES.has(this.tools.order.value)) this.arrange();
    else this.list.draw();
  }

  arrange() {
    const { flows, delays, through } = this.state;
    const [query, order, group] = ["query", "order", "group"].map((name) => this.tools[name].value);
    this.shown = chosenFlows(flows, { query, through, order, delays });
    const rows = rowsOf(this.shown, { group, closed: this.closed });
    this.groups = rows.filter((row) => row.group !== undefined);
    const number = this.shown.length === flows.length ? `${flows.length}` : `${this.shown.length} of ${flows.length}`;
    say(byId("flows-title"), flows.length ? `Flows (${number})` : "Flows");
    say(byId("no-flows"), flows.length ? "None of the flows is such." : "No flows yet: ask for one.");
    byId("no-flows").hidden = this.shown.length > 0;
    byId("flow-scroll").hidden = this.shown.length === 0;
    byId("through").hidden = through === null;
    if (through !== null) {
      say(byId("through"), `through ${through} ×`);
      set(byId("through"), { "aria-label": `Only flows through ${through}: show all again` });
    }
    byId("fold").hidden = group === "none";
    say(byId("fold"), this.groups.some(({ isOpen }) => isOpen) ? "Collapse all" : "Expand all");
    this.list.show(rows);
  }

  foldAll() {
    const isAnyOpen = this.groups.some(({ isOpen }) => isOpen);
    this.closed = new Set(isAnyOpen ? this.groups.map(({ group }) => group) : []);
    this.arrange();
  }

  heading() {
    const part = { count: html("span", { class: "muted" }) };
    part.name = html("span");
    part.fold = html("button", { type: "button", class: "pick" }, part.name);
    part.fold.addEventListener("click", () => {
      const { group } = part.row;
      if (!this.closed.delete(group)) this.closed.add(group);
      this.arrange();
    });
    part.node = html("li", { class: "group" }, html("h3", {}, part.fold, part.count));
    part.focus = () => part.fold.focus();
    part.walk = (isIn) => set(part.fold, { tabindex: isIn ? 0 : -1 });
    part.update = (row) => {
      part.row = row;
      say(part.name, row.group);
      say(part.count, row.count === 1 ? "1 flow" : `${row.count} flows`);
      set(part.fold, { "aria-expanded": String(row.isOpen) });
    };
    return part;
  }

  row() {
    const part = { strip: new Strip({ numbers: false }), state: html("span"), path: html("span") };
    part.pick = html("button", { type: "button", class: "pick", "aria-pressed": "false" });
    part.pick.addEventListener("click", () => this.choose("flow", part.flow.id));
    part.remove = html("button", { type: "button", class: "quiet" }, "Release");
    part.remove.addEventListener("click", () => this.release(part.flow));
    part.guarantee = html("strong");
    part.node = html(
      "li",
      { class: "flow" },
      html("div", { class: "what" }, html("h3", {}, part.pick, " ", part.state), html("p", { class: "muted" }, part.path)),
      html("p", { class: "guarantee" }, "at most ", part.guarantee),
      part.strip.node,
      part.remove,
    );
    part.focus = () => part.pick.focus();
    part.walk = (isIn) => {
      for (const button of [part.pick, part.remove]) set(button, { tabindex: isIn ? 0 : -1 });
    };
    part.update = ({ flow }) => this.fill(part, flow);
    return part;
  }

  fill(part, flow) {
    const { delays, chosen, through } = this.state;
    const measured = delays[flow.id];
    const isChosen = chosen?.kind === "flow" && chosen.name === flow.id;
    if (part.isChosen !== isChosen || part.row === null) {
      part.isChosen = isChosen;
      set(part.pick, { "aria-pressed": String(isChosen) });
      part.node.classList.toggle("chosen", isChosen);
    }
    if (part.flow !== flow || part.row === null) {
      const state = standing(flow);
      part.node.dataset.flow = flow.id;
      say(part.pick, flow.id);
      set(part.remove, { "aria-label": `Release ${flow.id}` });
      say(part.state, state.text);
      set(part.state, { class: state.class });
      say(part.path, shortPath(flow));
      say(part.guarantee, milliseconds(flow.guarantee_ns));
      part.node.classList.toggle("broken", state.class.endsWith("bad"));
    }
    if (part.flow !== flow || part.measured !== measured || part.row === null) part.strip.update(flow, measured);
    Object.assign(part, { flow, measured, row: flow, through });
  }
}
