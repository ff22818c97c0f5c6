// The picture of the network: use as an arc round each switch, the chosen flow's path over the cables.

import { byId, say, set, svg } from "./dom.js";
import { folds, HALO, hostsAt, layout, PILL } from "./layout.js";
import { milliseconds, nodesOf, pathsOf, percent, switchesOf } from "./units.js";

const PARALLEL = 5;
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

export class Picture {
  /** `choose(kind, name)` is called when somebody picks a switch. */
  constructor(topology, choose) {
    this.topology = topology;
    this.choose = choose;
    this.place = byId("topology");
    this.hosts = hostsAt(topology);
    this.folds = folds(topology);
    this.unfolded = new Set();
    this.current = topology.switches[0]?.name;
    this.state = { switches: [], flows: [], chosen: null };
    byId("unfold").addEventListener("click", () => this.unfoldAll());
    this.place.addEventListener("focusin", ({ target }) => this.enter(target.closest("[data-at]")?.dataset.at));
    this.place.addEventListener("keydown", (event) => this.walk(event));
    const text = document.createElement("canvas").getContext("2d");
    const { fontFamily } = getComputedStyle(this.place);
    this.measure = (words, size) => {
      text.font = `600 ${size}px ${fontFamily}`;
      return text.measureText(words).width;
    };
    this.draw();
    new ResizeObserver(() => {
      if (Math.abs(this.place.clientWidth - this.room) > 1) this.redraw();
    }).observe(this.place);
  }

  redraw() {
    const focus = this.place.contains(document.activeElement) ? document.activeElement.dataset : null;
    const held = focus && { at: focus.at, isPill: focus.name === undefined };
    this.draw();
    this.update(this.state);
    if (held) (held.isPill ? this.pills.get(held.at) : this.switches.get(held.at)?.node)?.focus();
  }

  draw() {
    this.counted = null;
    this.switches = new Map();
    this.pills = new Map();
    this.room = this.place.clientWidth;
    const plan = layout(this.topology, { room: this.room, unfolded: this.unfolded, measure: this.measure });
    this.plan = plan;
    this.paths = [0, 1].map(() => svg("polyline", { class: "path", points: "" }));
    const hosts = svg("g", { class: "hosts" });
    for (const { name, ip } of this.topology.hosts) if (plan.hosts.has(name)) hosts.append(this.host(name, ip));
    const switches = svg("g", { class: "switches" });
    for (const { name, profile } of this.topology.switches) {
      switches.append(this.switch(name, profile));
      if (plan.pills.has(name)) switches.append(this.pill(name));
    }
    this.drawing = svg(
      "svg", { viewBox: `0 0 ${plan.width} ${plan.height}`, width: plan.width, height: plan.height },
      this.cablesDrawn(), ...this.paths, hosts, switches,
    );
    this.place.replaceChildren(this.drawing);
    this.enter(this.current);
    const isAny = [...plan.pills.values()].some(({ isOpen }) => isOpen);
    byId("unfold").hidden = !plan.pills.size;
    say(byId("unfold"), isAny ? "Fold hosts" : "Show all hosts");
  }

  /** A line for each cable between switches, parallel ones beside each other, and to all hosts that are shown. */
  cablesDrawn() {
    const { switches, hosts, pills } = this.plan;
    const drawn = svg("g", { class: "cables" });
    this.cables = new Map();
    const between = new Map();
    for (const { a, b } of this.topology.links) {
      const key = pair(a.node, b.node);
      if (switches.has(a.node) && switches.has(b.node)) between.set(key, [...(between.get(key) ?? []), [a.node, b.node].sort()]);
    }
    for (const [key, ends] of between) {
      this.cables.set(key, ends.map(([a, b], number) => {
        const [from, to] = [switches.get(a), switches.get(b)];
        const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
        const aside = (number - (ends.length - 1) / 2) * PARALLEL;
        const [x, y] = [(-aside * (to.y - from.y)) / length, (aside * (to.x - from.x)) / length];
        return svg("line", { x1: from.x + x, y1: from.y + y, x2: to.x + x, y2: to.y + y });
      }));
    }
    for (const [at, names] of this.hosts) {
      const pill = pills.get(at);
      if (pill) this.cables.set(`hosts of ${at}`, [way(pill.way)]);
      for (const name of names) if (hosts.has(name)) this.cables.set(pair(at, name), [way(hosts.get(name).way)]);
    }
    for (const lines of this.cables.values()) drawn.append(...lines);
    return drawn;
  }

  host(name, ip) {
    const place = this.plan.hosts.get(name);
    const { host: half, label } = this.plan.kind;
    const node = svg("g", { transform: `translate(${place.x} ${place.y})`, class: "host" });
    const isLeft = place.side === "left";
    node.append(svg("rect", { x: -half, y: -half, width: 2 * half, height: 2 * half, rx: 2.5 }));
    node.append(svg("text", {
      x: isLeft ? -half - 5 : half + 5, y: 0.36 * label, "font-size": label, "text-anchor": isLeft ? "end" : "start",
    }, place.text));
    node.append(svg("title", {}, `${name}, ${ip}`));
    return node;
  }

  /** The number of hosts at a switch, which shows or hides them. */
  pill(at) {
    const { x, y, width, text, isOpen } = this.plan.pills.get(at);
    const left = -width / 2;
    const node = svg(
      "g", { transform: `translate(${x} ${y})`, class: "pill", role: "button", "aria-expanded": String(isOpen) },
      svg("title", {}, this.hosts.get(at).join(", ")),
      svg("rect", { x: left, y: -PILL.high / 2, width, height: PILL.high, rx: PILL.high / 2 }),
      svg("path", { d: isOpen ? "M-4-2 0 3 4-2" : "M-2-4 3 0-2 4", transform: `translate(${left + 10} 0)` }),
      svg("rect", { class: "drawn", x: left + 17, y: -4.5, width: 9, height: 9, rx: 2 }),
      svg("text", { x: left + PILL.before, y: 0.36 * PILL.text, "font-size": PILL.text }, text),
    );
    set(node, { "aria-label": `${text} ${text === "1" ? "host" : "hosts"} at ${at}` });
    node.dataset.at = at;
    press(node, () => {
      if (!this.unfolded.delete(at)) this.unfolded.add(at);
      this.redraw();
      this.pills.get(at).focus();
    });
    this.pills.set(at, node);
    return node;
  }

  unfoldAll() {
    const isAny = this.unfolded.size > 0;
    this.unfolded = new Set(isAny ? [] : this.topology.switches.map(({ name }) => name));
    this.redraw();
  }

  switch(name, profile) {
    const { x, y, text, isInside } = this.plan.switches.get(name);
    const { radius, name: size, state } = this.plan.kind;
    const around = 2 * Math.PI * radius;
    const width = size ? 7 : 3;
    const parts = {
      around,
      arc: svg("circle", {
        r: radius, class: "arc", "stroke-width": width, "stroke-dasharray": `0 ${around}`, transform: "rotate(-90)",
      }),
      title: svg("title", {}, name),
      state: svg("text", { class: "state" }),
    };
    if (size) set(parts.state, { y: isInside ? 0.25 * size + state - 2 : 0.36 * state, "font-size": state });
    parts.node = svg(
      "g",
      { transform: `translate(${x} ${y})`, class: "switch", role: "button" },
      parts.title,
      svg("circle", { r: radius + 5, class: "halo" }),
      svg("circle", { r: radius, class: "body", "stroke-width": width }),
      parts.arc,
      ...(size ? [svg("text", { y: isInside ? -2 : radius + HALO + size - 1, "font-size": size, class: "name" }, text), parts.state] : []),
    );
    parts.node.dataset.name = name;
    parts.node.dataset.at = name;
    parts.profile = profile;
    press(parts.node, () => this.choose("switch", name));
    this.switches.set(name, parts);
    return parts.node;
  }

  /** The tabulator comes to one switch and its hosts; the arrow keys go on from there. */
  enter(name) {
    if (name === undefined) return;
    this.current = name;
    for (const [at, { node }] of this.switches) set(node, { tabindex: at === name ? 0 : -1 });
    for (const [at, node] of this.pills) set(node, { tabindex: at === name ? 0 : -1 });
  }

  walk(event) {
    const direction = ARROWS[event.key];
    const here = this.plan.switches.get(event.target.closest("[data-at]")?.dataset.at);
    if (!direction || !here) return;
    event.preventDefault();
    let [next, least] = [null, Infinity];
    for (const [name, { x, y }] of this.plan.switches) {
      const along = (x - here.x) * direction[0] + (y - here.y) * direction[1];
      const aside = Math.abs((x - here.x) * direction[1] + (y - here.y) * direction[0]);
      const cost = along + 2 * aside;
      if (along > 1 && cost < least) [next, least] = [name, cost];
    }
    if (next) this.switches.get(next).node.focus();
  }

  /** The points of a path, given by its nodes from host to host. */
  points(nodes) {
    const hostWay = (host, at) => (this.plan.hosts.get(host) ?? this.plan.pills.get(at))?.way ?? [];
    const switches = nodes.slice(1, -1);
    if (!switches.length) return [];
    return [
      ...[...hostWay(nodes[0], switches[0])].reverse(),
      ...switches.map((name) => this.plan.switches.get(name)).filter(Boolean),
      ...hostWay(nodes.at(-1), switches.at(-1)),
    ];
  }

  /** Show the state: { switches, flows, chosen: {kind, name} | null, limiting: name | null }. */
  update(state) {
    this.state = state;
    for (const one of state.switches) this.updateSwitch(one, state);
    if (state.flows !== this.counted) this.updateCables(state.flows);
    this.counted = state.flows;
    const flow = state.chosen?.kind === "flow" && state.flows.find(({ id }) => id === state.chosen.name);
    const followed = state.tried ?? flow;
    const paths = followed ? pathsOf(followed) : [];
    this.paths.forEach((line, index) => {
      line.classList.toggle("tried", Boolean(state.tried));
      set(line, { points: asText(this.points(paths[index] ?? [])) });
    });
    const passing = new Set(paths.flat());
    for (const [name, { node }] of this.switches) node.classList.toggle("passed", passing.has(name));
    for (const [at, node] of this.pills) node.classList.toggle("passed", this.hosts.get(at).some((host) => passing.has(host)));
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
      const keys = pathsOf(flow).flatMap((nodes) => nodes.slice(1).map((name, index) => pair(nodes[index], name)));
      for (const key of new Set(keys)) passing.set(key, (passing.get(key) ?? 0) + 1);
    }
    for (const [key, lines] of this.cables) {
      const number = passing.get(key) ?? 0;
      for (const line of lines) {
        line.classList.toggle("used", number > 0);
        const most = line.tagName === "line" ? 7 : 3;
        line.style.strokeWidth = number ? `${Math.min(2.5 + Math.log2(number), most)}` : "";
      }
    }
  }

  caption(flow, state) {
    const { flows, chosen } = state;
    let text = "Choose a flow or a switch to follow it.";
    if (state.tried) text = `${state.tried.id}, if it were asked for: ${nodesOf(state.tried).join(" › ")}`;
    else if (flow) text = `${flow.id}: ${pathsOf(flow).map((nodes) => nodes.join(" › ")).join(" and ")}, at most ${milliseconds(flow.guarantee_ns)}`;
    else if (chosen?.kind === "switch") {
      const number = flows.filter((flow) => switchesOf(flow).includes(chosen.name)).length;
      text = `${chosen.name}: ${number === 1 ? "1 flow passes" : `${number} flows pass`}`;
    }
    say(byId("chosen"), text);
  }
}

/** How a switch is, in words. */
export function stateText(one) {
  if (one.state === "away") return "away";
  return one.complete ? "connected" : "connected, its table is being set";
}

const pair = (a, b) => JSON.stringify([a, b].sort());

const asText = (points) => points.map(({ x, y }) => `${x},${y}`).join(" ");

const way = (points) => svg("polyline", { points: asText(points) });

/** What a click does, Enter and the space bar do as well. */
function press(node, act) {
  node.addEventListener("click", act);
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  });
}
