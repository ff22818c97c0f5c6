// Where switches and hosts lie: rings round, chains in a line, anything else on a circle; where there is little room, a
// large circle is an upright oval. Pure.

/** So many switches are drawn large on a circle. */
const FEW = 12;

/** { width, height, radius, switches: Map(name -> {x, y}), hosts: Map(name -> {x, y, side}) } */
export function layout(topology, { narrow = false } = {}) {
  const graph = adjacency(topology);
  const chain = asChain(graph);
  if (chain) return inLine(chain, graph, narrow);
  const order = roundTrip(graph);
  return narrow && order.length > FEW ? onOval(order, graph) : onCircle(order, graph);
}

function adjacency(topology) {
  const switches = new Map(topology.switches.map(({ name }) => [name, []]));
  const hosts = new Map([...switches.keys()].map((name) => [name, []]));
  const known = new Set(topology.hosts.map(({ name }) => name));
  const alone = [];
  for (const { a, b } of topology.links) {
    if (switches.has(a.node) && switches.has(b.node)) {
      switches.get(a.node).push(b.node);
      switches.get(b.node).push(a.node);
    } else if (switches.has(a.node) && known.has(b.node)) hosts.get(a.node).push(b.node);
    else if (switches.has(b.node) && known.has(a.node)) hosts.get(b.node).push(a.node);
    else alone.push(a.node, b.node);
  }
  return { switches, hosts, alone };
}

/** The switches from one end to the other, if they form a chain. */
function asChain({ switches }) {
  const ends = [...switches].filter(([, next]) => next.length <= 1).map(([name]) => name);
  if (ends.length !== (switches.size === 1 ? 1 : 2)) return null;
  const chain = [];
  const seen = new Set();
  for (let here = ends[0]; here !== undefined; ) {
    if (switches.get(here).length > 2) return null;
    seen.add(here);
    chain.push(here);
    here = switches.get(here).find((name) => !seen.has(name));
  }
  return chain.length === switches.size ? chain : null;
}

/** All switches, neighbours beside each other as far as a walk finds them. */
function roundTrip({ switches }) {
  const order = [];
  const seen = new Set();
  const visit = (start) => {
    const waiting = [start];
    while (waiting.length) {
      const name = waiting.pop();
      if (seen.has(name)) continue;
      seen.add(name);
      order.push(name);
      waiting.push(...switches.get(name).filter((next) => !seen.has(next)).reverse());
    }
  };
  for (const name of switches.keys()) visit(name);
  return order;
}

function inLine(chain, graph, narrow) {
  const radius = 36;
  const [along, away] = narrow ? [170, 120] : [270, 190];
  const most = Math.max(1, ...[...graph.hosts.values()].map((names) => names.length));
  const across = Math.max(chain.length > 2 ? 150 : 105, (most * (narrow ? 90 : 80)) / 2 + 25);
  const length = (chain.length - 1) * along + 2 * away + 2 * 60;
  const place = (x, y) => (narrow ? { x: y, y: x } : { x, y });
  const switches = new Map();
  const hosts = new Map();
  chain.forEach((name, index) => {
    const x = 60 + away + index * along;
    switches.set(name, place(x, across));
    for (const [number, host] of graph.hosts.get(name).entries()) {
      const total = graph.hosts.get(name).length;
      hosts.set(host, hostBeside({ x, across, away, place, narrow, chain, index, number, total }));
    }
  });
  const box = place(length, 2 * across);
  return { width: box.x, height: box.y, radius, switches, hosts };
}

function hostBeside({ x, across, away, place, narrow, chain, index, number, total }) {
  const isFirst = index === 0;
  const isLast = index === chain.length - 1;
  const step = narrow ? 90 : 80;
  if (isFirst && isLast) {
    const left = number % 2 === 0;
    const row = Math.floor(number / 2) - (Math.ceil(total / 2) - 1) / 2;
    return { ...place(x + (left ? -away : away), across + row * step), side: narrow ? "below" : left ? "left" : "right" };
  }
  if (isFirst || isLast) {
    const row = number - (total - 1) / 2;
    const side = narrow ? (isFirst ? "above" : "below") : isFirst ? "left" : "right";
    return { ...place(x + (isFirst ? -away : away), across + row * step), side };
  }
  const up = number % 2 === 0;
  const column = Math.floor(number / 2) - (Math.ceil(total / 2) - 1) / 2;
  const side = narrow ? (up ? "left" : "right") : up ? "above" : "below";
  return { ...place(x + column * 60, across + (up ? -110 : 110)), side };
}

/** Down on the right and up on the left, bulging a little, so that a cable across hides behind no switch. */
function onOval(order, graph) {
  const [width, radius, step, end] = [360, 19, 54, 34];
  const onRight = Math.ceil(order.length / 2);
  const switches = new Map();
  const hosts = new Map();
  order.forEach((name, index) => {
    const isRight = index < onRight;
    const count = isRight ? onRight : order.length - onRight;
    const row = isRight ? index : order.length - 1 - index;
    const part = count > 1 ? row / (count - 1) : 0.5;
    const y = end + part * (onRight - 1) * step;
    const outwards = isRight ? 1 : -1;
    switches.set(name, { x: width / 2 + outwards * (32 + 40 * Math.sin(Math.PI * part)), y });
    const names = graph.hosts.get(name);
    names.forEach((host, number) => {
      const beside = y + ((number + 0.5) / names.length - 0.5) * (step - 4);
      hosts.set(host, { x: width / 2 + outwards * 124, y: beside, side: isRight ? "right" : "left" });
    });
  });
  return { width, height: 2 * end + (onRight - 1) * step, radius, switches, hosts, middle: null };
}

function onCircle(order, graph) {
  const radius = order.length > FEW ? 25 : 34;
  const step = order.length > FEW ? 66 : 130;
  const circle = Math.max(130, (order.length * step) / (2 * Math.PI));
  const outer = circle + (order.length > FEW ? 74 : 110);
  const middle = outer + 52;
  const turn = (2 * Math.PI) / order.length;
  const switches = new Map();
  const hosts = new Map();
  const at = (angle, distance) => ({
    x: middle + distance * Math.sin(angle),
    y: middle - distance * Math.cos(angle),
  });
  order.forEach((name, index) => {
    const angle = index * turn;
    switches.set(name, at(angle, circle));
    const names = graph.hosts.get(name);
    names.forEach((host, number) => {
      const spread = Math.min(turn / names.length, 0.42);
      const beside = angle + (number - (names.length - 1) / 2) * spread;
      hosts.set(host, { ...at(beside, outer), side: "round", angle: beside });
    });
  });
  return { width: 2 * middle, height: 2 * middle, radius, switches, hosts, middle };
}
