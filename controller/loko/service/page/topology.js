// The picture of the network: use as an arc round each switch, the chosen flow's path over the cables.

import { byId, say, set, svg } from "./dom.js";
import { layout } from "./layout.js";
import { milliseconds, nodesOf, percent } from "./units.js";

const NARROW = matchMedia("(max-width: 640px)");

export class Picture {
  /** `choose(kind, name)` is called when somebody picks a switch. */
  constructor(topology, choose) {
    this.topology = topology;
    this.choose = choose;
    this.place = byId("topology");
    this.switches = new Map();
    this.state = { switches: [], flows: [], chosen: null };
    this.draw();
    NARROW.addEventListener("change", () => {
      this.draw();
      this.update(this.state);
    });
  }

  draw() {
    this.counted = null;
    const plan = layout(this.topology, { narrow: NARROW.matches });
    this.plan = plan;
    this.cables = new Map();
    const cables = svg("g", { class: "cables" });
    for (const link of this.topology.links) {
      const [a, b] = [this.at(link.a.node), this.at(link.b.node)];
      if (!a || !b) continue;
      const line = svg("line", { x1: a.x, y1: a.y, x2: b.x, y2: b.y });
      const key = pair(link.a.node, link.b.node);
      this.cables.set(key, [...(this.cables.get(key) ?? []), line]);
      cables.append(line);
    }
    this.path = svg("polyline", { class: "path", points: "" });
    const hosts = svg("g", { class: "hosts" });
    for (const { name, ip } of this.topology.hosts) hosts.append(this.host(name, ip));
    const switches = svg("g", { class: "switches" });
    for (const { name, profile } of this.topology.switches) switches.append(this.switch(name, profile));
    this.middle = svg("text", { class: "middle", x: plan.middle ?? 0, y: plan.middle ?? 0 });
    this.drawing = svg(
      "svg",
      { viewBox: `0 0 ${plan.width} ${plan.height}`, class: plan.width > 640 || plan.radius < 30 ? "large" : null },
      cables, this.path, hosts, switches, plan.middle ? this.middle : svg("g"),
    );
    this.drawing.style.maxWidth = `${Math.round(plan.width * 1.15)}px`;
    this.place.replaceChildren(this.drawing);
  }

  at(name) {
    return this.plan.switches.get(name) ?? this.plan.hosts.get(name);
  }

  host(name, ip) {
    const place = this.plan.hosts.get(name);
    if (!place) return svg("g");
    const node = svg("g", { transform: `translate(${place.x} ${place.y})`, class: "host" });
    const small = this.plan.radius < 30;
    const size = small ? 5 : 11;
    node.append(svg("rect", { x: -size, y: -size, width: 2 * size, height: 2 * size, rx: 2.5 }));
    node.append(svg("text", labelPlace(place, size + (small ? 6 : 9)), name));
    node.append(svg("title", {}, `${name}, ${ip}`));
    return node;
  }

  switch(name, profile) {
    const place = this.plan.switches.get(name);
    const { radius } = this.plan;
    const around = 2 * Math.PI * radius;
    const parts = {
      around,
      arc: svg("circle", { r: radius, class: "arc", "stroke-dasharray": `0 ${around}`, transform: "rotate(-90)" }),
      title: svg("title", {}, name),
      state: svg("text", { y: radius < 30 ? 14 : 17, class: "state" }),
    };
    parts.node = svg(
      "g",
      { transform: `translate(${place.x} ${place.y})`, class: "switch", tabindex: 0, role: "button" },
      parts.title,
      svg("circle", { r: radius + 5, class: "halo" }),
      svg("circle", { r: radius, class: "body" }),
      parts.arc,
      svg("text", { y: radius < 30 ? 3 : 1, class: "name" }, name),
      parts.state,
    );
    parts.node.dataset.name = name;
    parts.profile = profile;
    const choose = () => this.choose("switch", name);
    parts.node.addEventListener("click", choose);
    parts.node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    });
    this.switches.set(name, parts);
    return parts.node;
  }

  /** Show the state: { switches, flows, chosen: {kind, name} | null, limiting: name | null }. */
  update(state) {
    this.state = state;
    for (const one of state.switches) this.updateSwitch(one, state);
    if (state.flows !== this.counted) this.updateCables(state.flows);
    this.counted = state.flows;
    const flow = state.chosen?.kind === "flow" && state.flows.find(({ id }) => id === state.chosen.name);
    const followed = state.tried ?? flow;
    const nodes = followed ? nodesOf(followed) : [];
    this.path.classList.toggle("tried", Boolean(state.tried));
    const points = nodes.map((name) => this.at(name)).filter(Boolean);
    set(this.path, { points: points.map(({ x, y }) => `${x},${y}`).join(" ") });
    const passing = new Set(nodes);
    for (const [name, { node }] of this.switches) node.classList.toggle("passed", passing.has(name));
    this.caption(flow, state);
  }

  updateSwitch(one, { chosen, limiting }) {
    const parts = this.switches.get(one.name);
    if (!parts) return;
    const fullest = one.use.reduce((most, share) => (share.fraction > most.fraction ? share : most), { fraction: 0 });
    const part = Math.min(fullest.fraction, 1);
    set(parts.arc, { "stroke-dasharray": `${part * parts.around} ${parts.around}` });
    const isAway = one.state === "away";
    parts.node.classList.toggle("away", isAway);
    parts.node.classList.toggle("busy", !isAway && !one.complete);
    parts.node.classList.toggle("high", part > 0.9);
    parts.node.classList.toggle("chosen", chosen?.kind === "switch" && chosen.name === one.name);
    parts.node.classList.toggle("limiting", limiting === one.name);
    say(parts.state, isAway ? "away" : percent(fullest.fraction));
    const use = fullest.quantity ? `, ${percent(fullest.fraction)} of its ${fullest.quantity} in use` : "";
    const text = `${one.name} (${parts.profile}): ${stateText(one)}${use}`;
    say(parts.title, text);
    set(parts.node, { "aria-label": text, "aria-pressed": String(chosen?.kind === "switch" && chosen.name === one.name) });
  }

  updateCables(flows) {
    const passing = new Map();
    for (const flow of flows) {
      const nodes = nodesOf(flow);
      nodes.slice(1).forEach((name, index) => {
        const key = pair(nodes[index], name);
        passing.set(key, (passing.get(key) ?? 0) + 1);
      });
    }
    for (const [key, lines] of this.cables) {
      const number = passing.get(key) ?? 0;
      for (const line of lines) {
        line.classList.toggle("used", number > 0);
        line.style.strokeWidth = number ? `${Math.min(2.5 + Math.log2(number), 7)}` : "";
      }
    }
  }

  caption(flow, state) {
    const { flows, chosen } = state;
    let text = "Choose a flow or a switch to follow it.";
    if (state.tried) text = `${state.tried.id}, if it were asked for: ${nodesOf(state.tried).join(" › ")}`;
    else if (flow) text = `${flow.id}: ${nodesOf(flow).join(" › ")}, at most ${milliseconds(flow.guarantee_ns)}`;
    else if (chosen?.kind === "switch") {
      const number = flows.filter(({ path }) => path.some((hop) => hop.switch === chosen.name)).length;
      text = `${chosen.name}: ${number === 1 ? "1 flow passes" : `${number} flows pass`}`;
    }
    say(byId("chosen"), text);
    const lines = flow
      ? [flow.id, `at most ${milliseconds(flow.guarantee_ns)}`]
      : [`${flows.length} ${flows.length === 1 ? "flow" : "flows"}`, `${this.topology.switches.length} switches`];
    this.middle.replaceChildren(
      ...lines.map((line, index) => svg("tspan", { x: this.plan.middle ?? 0, dy: index ? "1.4em" : "-0.3em" }, line)),
    );
  }
}

/** How a switch is, in words. */
export function stateText(one) {
  if (one.state === "away") return "away";
  return one.complete ? "connected" : "connected, its table is being set";
}

const pair = (a, b) => JSON.stringify([a, b].sort());

function labelPlace({ side, angle }, away) {
  if (side === "left") return { x: -away, y: 5, "text-anchor": "end" };
  if (side === "right") return { x: away, y: 5, "text-anchor": "start" };
  if (side === "above") return { x: 0, y: -away, "text-anchor": "middle" };
  if (side === "below") return { x: 0, y: away + 10, "text-anchor": "middle" };
  const [x, y] = [Math.sin(angle), -Math.cos(angle)];
  const anchor = x > 0.35 ? "start" : x < -0.35 ? "end" : "middle";
  return { x: x * away, y: y * away + 4 + (anchor === "middle" ? y * 4 : 0), "text-anchor": anchor };
}
