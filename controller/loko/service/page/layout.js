// Where everything of the picture lies, in pixels. The service says where switches stand relative to each other; here
// they get as far apart as texts and hosts need, within the width that there is. Pure.

/** How a picture is drawn, by how many switches it has: sizes in pixels; `reach`: length of a host's cable. */
const KINDS = [
  { most: 12, radius: 32, name: 15, state: 12, label: 14, row: 38, host: 10, reach: 90, apart: 170, longest: 130 },
  { most: 120, radius: 22, name: 13, state: 11, label: 13, row: 20, host: 6, reach: 12, apart: 22, longest: 96 },
  { most: Infinity, radius: 6, apart: 4 },
];
const NARROW = 560;
const NARROW_KINDS = [
  { ...KINDS[0], radius: 28, name: 14, state: 11, label: 13, row: 22, host: 8, reach: 34, apart: 60, longest: 90 },
  { ...KINDS[1], radius: 19, name: 12, label: 12, state: 10, row: 18, longest: 76 },
  KINDS[2],
];
/** With more hosts they are folded at first: a number at their switch. */
const FEW_HOSTS = 16;
/** The number of a switch's hosts, with an arrow and a drawn host in front of it. */
export const PILL = { text: 12, high: 22, before: 30, after: 9 };
/** Between a switch and what is beside it. */
export const HALO = 6;
const GAP = 6;
const MARGIN = 6;
/** How much of the picture tiles may fill, where its shape leaves that open. */
const FILLED = 0.5;
const ROUNDS = 300;
const SIDES = { right: [1, 0], left: [-1, 0], below: [0, 1], above: [0, -1] };

export const hostsAt = (topology) => {
  const hosts = new Map(topology.switches.map(({ name }) => [name, []]));
  const known = new Set(topology.hosts.map(({ name }) => name));
  for (const { a, b } of topology.links) {
    if (known.has(b.node)) hosts.get(a.node)?.push(b.node);
    if (known.has(a.node)) hosts.get(b.node)?.push(a.node);
  }
  return hosts;
};

/** Whether a picture of this network folds hosts. */
export const folds = (topology) => topology.hosts.length > FEW_HOSTS;

/**
 * { width, height, kind, switches: Map(name -> {x, y, text, isInside}), hosts: Map(name -> {x, y, side, text, way}),
 * pills: Map(switch -> {x, y, width, text, way}) }; a way is a cable's points from the switch on. `unfolded` has the
 * switches whose hosts are shown, `measure(text, size)` the width of a text.
 */
export function layout(topology, { room, unfolded, measure }) {
  const isUpright = room < NARROW;
  const kind = (isUpright ? NARROW_KINDS : KINDS).find(({ most }) => topology.switches.length <= most);
  const spots = new Map(topology.switches.map(({ name, wide, upright }) => [name, isUpright ? upright : wide]));
  const sides = freeSides(topology, spots, isUpright);
  const hosts = hostsAt(topology);
  const fitted = (text, size) => shorten(text, size, kind.longest, measure);
  const inside = 2 * kind.radius - 8;
  const isInside = kind.name && topology.switches.every(({ name }) => measure(name, kind.name) <= inside);
  const tiles = topology.switches.map(({ name }) => {
    const tile = body(name, { kind, isInside, fitted, measure });
    Object.assign(tile, spots.get(name));
    const here = hosts.get(name);
    if (!kind.name || !here.length) return tile;
    const names = here.map((host) => ({ host, text: fitted(host, kind.label) }));
    for (const one of names) one.width = measure(one.text, kind.label);
    const add = folds(topology) ? addFolding : addHosts;
    add(tile, names, { side: sides.get(name), kind, isOpen: unfolded.has(name), measure });
    return tile;
  });
  const size = place(tiles, room - 2 * MARGIN, kind);
  return { ...size, kind, ...absolute(tiles, isInside) };
}

/** A text with its end left out, so that it is no wider than this. */
function shorten(text, size, longest, measure) {
  if (measure(text, size) <= longest) return text;
  let kept = [...text];
  while (kept.length > 1 && measure(`${kept.join("")}…`, size) > longest) kept = kept.slice(0, -1);
  return `${kept.join("")}…`;
}

/** On which side of each switch there is most room: away from its cables, and from the middle of the picture. */
function freeSides(topology, spots, isUpright) {
  const all = [...spots.values()];
  const middle = { x: sum(all.map(({ x }) => x)) / all.length, y: sum(all.map(({ y }) => y)) / all.length };
  const ways = new Map([...spots.keys()].map((name) => [name, []]));
  for (const { a, b } of topology.links) {
    if (a.node === b.node || !spots.has(a.node) || !spots.has(b.node)) continue;
    ways.get(a.node).push(unit(spots.get(a.node), spots.get(b.node)));
    ways.get(b.node).push(unit(spots.get(b.node), spots.get(a.node)));
  }
  const free = (name, [x, y]) => {
    const outwards = unit(middle, spots.get(name));
    const nearest = Math.max(-1, ...ways.get(name).map((way) => way.x * x + way.y * y));
    // On a narrow picture a place beside it makes the picture no higher.
    return Math.max(nearest, 0.1) - (isUpright ? 0.1 : 0.4) * (outwards.x * x + outwards.y * y) + (isUpright && y ? 0.3 : 0);
  };
  const names = Object.keys(SIDES);
  return new Map([...spots.keys()].map((name) => {
    const costs = names.map((side) => free(name, SIDES[side]));
    return [name, names[costs.indexOf(Math.min(...costs))]];
  }));
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

function unit(from, to) {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  return length ? { x: (to.x - from.x) / length, y: (to.y - from.y) / length } : { x: 0, y: 0 };
}

/** A tile is what belongs to a switch, and the box about it, relative to the switch. */
function body(name, { kind, isInside, fitted, measure }) {
  const half = kind.radius + (kind.name ? HALO : 2);
  const tile = { name, box: { left: -half, right: half, top: -half, bottom: half }, hosts: new Map(), pill: null };
  if (!kind.name) return tile;
  tile.text = isInside ? name : fitted(name, kind.name);
  if (!isInside) {
    const wide = measure(tile.text, kind.name) / 2 + 1;
    cover(tile.box, { left: -wide, right: wide, top: 0, bottom: half + kind.name + 3 });
  }
  return tile;
}

function cover(box, other) {
  box.left = Math.min(box.left, other.left);
  box.right = Math.max(box.right, other.right);
  box.top = Math.min(box.top, other.top);
  box.bottom = Math.max(box.bottom, other.bottom);
}

/** Hosts beside a switch, each with its cable. */
function addHosts(tile, names, { side, kind }) {
  const { row, host: half, reach, radius } = kind;
  const high = names.length * row;
  const widest = Math.max(...names.map(({ width }) => width)) + 2 * half + 6;
  if (side === "left" || side === "right") {
    const sign = SIDES[side][0];
    const x = sign * (Math.max(tile.box.right, radius + HALO) + reach);
    names.forEach(({ host, text }, index) => {
      const y = (index - (names.length - 1) / 2) * row;
      tile.hosts.set(host, { x, y, side, text, way: [{ x: 0, y: 0 }, { x, y }] });
    });
    const far = x + sign * (widest - half);
    cover(tile.box, { left: Math.min(far, 0), right: Math.max(far, 0), top: -high / 2, bottom: high / 2 });
    return;
  }
  const begin = side === "below" ? tile.box.bottom + reach / 2 : tile.box.top - reach / 2 - high;
  addList(tile, names, { begin, from: { x: names.length > 1 ? -half - 7 : 0, y: 0 }, kind });
}

/** Hosts below each other, beside the cable that they come from: `from` is where it begins. */
function addList(tile, names, { begin, from, kind }) {
  const { row, host: half } = kind;
  const x = names.length > 1 ? from.x + half + 7 : from.x;
  names.forEach(({ host, text, width }, index) => {
    const y = begin + (index + 0.5) * row;
    tile.hosts.set(host, { x, y, side: "right", text, way: [from, { x: from.x, y }, { x, y }] });
    cover(tile.box, { left: from.x - 2, right: x + half + 6 + width, top: y - row / 2, bottom: y + row / 2 });
  });
}

/** The number of hosts at a switch and, if they are unfolded, the hosts beyond it. */
function addFolding(tile, names, { side, kind, isOpen, measure }) {
  const text = `${names.length}`;
  const width = PILL.before + measure(text, PILL.text) + PILL.after;
  const high = PILL.high + (isOpen ? names.length * kind.row + 4 : 0);
  const list = isOpen ? Math.max(...names.map((one) => one.width)) + 2 * kind.host + 13 + kind.host : 0;
  const wide = Math.max(width, list);
  const [right, down] = SIDES[side];
  const away = (isOpen ? tile.box.right : kind.radius + HALO) + 4; // The list of hosts goes down beside the name.
  const left = right > 0 ? away : right < 0 ? -away - wide : -wide / 2;
  const top = down > 0 ? tile.box.bottom + 4 : down < 0 ? tile.box.top - 4 - high : -PILL.high / 2;
  const x = right < 0 && !isOpen ? left + wide - width / 2 : right || isOpen ? left + width / 2 : 0;
  const at = { x, y: down < 0 ? top + high - PILL.high / 2 : top + PILL.high / 2 };
  tile.pill = { ...at, width, text, isOpen, way: [{ x: 0, y: 0 }, at] };
  cover(tile.box, { left, right: left + wide, top, bottom: top + high });
  if (!isOpen) return;
  const from = { x: left + kind.host, y: at.y };
  addList(tile, names, { begin: down < 0 ? top : top + PILL.high + 4, from, kind });
}

/** Give tiles their places in pixels, none over another: { width, height }. */
function place(tiles, room, kind) {
  const gap = kind.name ? GAP : 2;
  const spots = tiles.map(({ x, y }) => ({ x, y }));
  const wide = Math.max(...spots.map(({ x }) => x));
  const high = Math.max(...spots.map(({ y }) => y));
  const area = sum(tiles.map(({ box }) => (box.right - box.left + gap) * (box.bottom - box.top + gap)));
  const least = 2 * kind.radius + kind.apart;
  let across = Math.max(least, Math.min(needed(tiles, spots, gap), Math.sqrt(area / FILLED / Math.max(wide * high, 1)) * 1.6));
  let down = across;
  const widthAt = (scale) =>
    Math.max(...tiles.map(({ box }, k) => spots[k].x * scale + box.right)) - Math.min(...tiles.map(({ box }, k) => spots[k].x * scale + box.left));
  if (widthAt(across) > room) {
    let [low, up] = [0, across];
    for (let step = 0; step < 30; step += 1) {
      const half = (low + up) / 2;
      if (widthAt(half) > room) up = half;
      else low = half;
    }
    across = low;
    const fill = area / FILLED / room / Math.max(high, 1);
    down = Math.max(across, Math.min(neededDown(tiles, spots, gap, across), fill));
  }
  tiles.forEach((tile, k) => Object.assign(tile, { x: spots[k].x * across, y: spots[k].y * down }));
  if (kind.name) {
    const left = Math.min(...tiles.map(({ x, box }) => x + box.left));
    const edge = left + Math.max(room, widthAt(across));
    for (let round = 0; round < ROUNDS && pushApart(tiles, gap, left, edge); round += 1);
    stack(tiles, gap);
  }
  const left = Math.min(...tiles.map(({ x, box }) => x + box.left)) - MARGIN;
  const top = Math.min(...tiles.map(({ y, box }) => y + box.top)) - MARGIN;
  for (const tile of tiles) Object.assign(tile, { x: tile.x - left, y: tile.y - top });
  return {
    width: Math.max(...tiles.map(({ x, box }) => x + box.right)) + MARGIN,
    height: Math.max(...tiles.map(({ y, box }) => y + box.bottom)) + MARGIN,
  };
}

function* pairs(tiles) {
  for (let i = 0; i < tiles.length; i += 1) for (let j = 0; j < i; j += 1) yield [i, j];
}

/** The scale of one direction at which a pair is apart in it. */
function pairScale(from, to, first, second, [begin, end], gap) {
  const [a, b, near, far] = from <= to ? [from, to, first, second] : [to, from, second, first];
  return b - a > 1e-6 ? Math.max(0, (gap + near[end] - far[begin]) / (b - a)) : Infinity;
}

/** The scale at which no two tiles overlap. */
function needed(tiles, spots, gap) {
  let most = 0;
  for (const [i, j] of pairs(tiles)) {
    const x = pairScale(spots[i].x, spots[j].x, tiles[i].box, tiles[j].box, ["left", "right"], gap);
    const y = pairScale(spots[i].y, spots[j].y, tiles[i].box, tiles[j].box, ["top", "bottom"], gap);
    most = Math.max(most, Math.min(x, y));
  }
  return most;
}

/** The vertical scale for that, where the horizontal one is given; those beside each other do not count. */
function neededDown(tiles, spots, gap, across) {
  let most = 0;
  for (const [i, j] of pairs(tiles)) {
    const x = pairScale(spots[i].x, spots[j].x, tiles[i].box, tiles[j].box, ["left", "right"], gap);
    const y = pairScale(spots[i].y, spots[j].y, tiles[i].box, tiles[j].box, ["top", "bottom"], gap);
    if (x > across && y < Infinity) most = Math.max(most, y);
  }
  return most;
}

function overlap(one, other, gap) {
  return {
    x: gap + Math.min(one.x + one.box.right - other.x - other.box.left, other.x + other.box.right - one.x - one.box.left),
    y: gap + Math.min(one.y + one.box.bottom - other.y - other.box.top, other.y + other.box.bottom - one.y - one.box.top),
  };
}

/** Move tiles that overlap away from each other, the shorter way, within the edges. Whether there were any. */
function pushApart(tiles, gap, left, edge) {
  let isAny = false;
  for (const [i, j] of pairs(tiles)) {
    const [one, other] = [tiles[i], tiles[j]];
    const over = overlap(one, other, gap);
    if (over.x <= 0.01 || over.y <= 0.01) continue;
    isAny = true;
    const axis = over.x < over.y ? "x" : "y";
    const by = (one[axis] < other[axis] || (one[axis] === other[axis] && i < j) ? -0.5 : 0.5) * over[axis];
    one[axis] += by;
    other[axis] -= by;
    for (const tile of [one, other]) tile.x = Math.max(left - tile.box.left, Math.min(edge - tile.box.right, tile.x));
  }
  return isAny;
}

/** Move tiles down that still overlap, from top to bottom: afterwards none does. */
function stack(tiles, gap) {
  const order = [...tiles].sort((a, b) => a.y + a.box.top - b.y - b.box.top);
  order.forEach((tile, k) => {
    for (let again = true; again; ) {
      again = false;
      for (const other of order.slice(0, k)) {
        const over = overlap(tile, other, gap - 1);
        if (over.x <= 0.01 || over.y <= 0.01) continue;
        tile.y = other.y + other.box.bottom - tile.box.top + gap;
        again = true;
      }
    }
  });
}

function absolute(tiles, isInside) {
  const [switches, hosts, pills] = [new Map(), new Map(), new Map()];
  for (const { name, x, y, text, hosts: here, pill } of tiles) {
    const moved = (part) => ({ ...part, x: x + part.x, y: y + part.y, way: part.way.map((at) => ({ x: x + at.x, y: y + at.y })) });
    switches.set(name, { x, y, text, isInside });
    if (pill) pills.set(name, moved(pill));
    for (const [host, part] of here) hosts.set(host, moved(part));
  }
  return { switches, hosts, pills };
}
