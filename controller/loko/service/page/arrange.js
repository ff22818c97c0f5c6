// Which rows the list of flows has, in which order: searched, filtered, sorted, grouped. Pure.

import { switchesOf } from "./units.js";

const measured = (name, without) => (flow, delays) => {
  const known = delays[flow.id];
  return known && known.received > 0 ? known[name] : without;
};
const used = (flow, delays) => {
  const known = delays[flow.id];
  return known && known.received > 0 ? known.max_ns / flow.guarantee_ns : -1;
};
const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const names = new Intl.Collator("en", { numeric: true });

/** What to sort by: a value of a flow, and whether the largest comes first. */
const ORDERS = {
  asked: { value: null },
  name: { value: ({ id }) => id, compare: names.compare },
  guarantee: { value: (flow) => flow.guarantee_ns },
  rate: { value: (flow) => flow.rate_bps, down: true },
  hops: { value: (flow) => flow.path.length, down: true },
  p99: { value: measured("p99_ns", -1), down: true },
  used: { value: used, down: true },
  lost: { value: (flow, delays) => (delays[flow.id]?.lost ?? 0) + (delays[flow.id]?.late ?? 0), down: true },
};

/** The groups of a flow. By switch it is in the group of each that it passes. */
const GROUPS = {
  none: null,
  switch: switchesOf,
  source: (flow) => [flow.source],
  destination: (flow) => [flow.destination],
  state: (flow) => [flow.broken.length ? "broken" : flow.state],
};

/** All words of a search are to be found in a flow: its name, hosts, switches, ports, state. */
function finder(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return () => true;
  return (flow) => {
    const text = [flow.id, flow.source, ...switchesOf(flow), flow.destination, flow.udp_source, flow.udp_destination, GROUPS.state(flow)].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

/** The flows to show, in order: { query, through: switch | null, order } */
export function chosenFlows(flows, { query, through, order, delays }) {
  const finds = finder(query);
  const kept = flows.filter(
    (flow) => finds(flow) && (through === null || switchesOf(flow).includes(through)),
  );
  const { value, compare, down } = ORDERS[order];
  if (!value) return kept;
  const by = compare ?? ((a, b) => (typeof a === "string" ? byText(a, b) : a - b));
  const keys = new Map(kept.map((flow) => [flow, value(flow, delays)]));
  return kept.sort((a, b) => (down ? by(keys.get(b), keys.get(a)) : by(keys.get(a), keys.get(b))));
}

/** The rows: { key, flow } or, of groups, { key, group, count, isOpen }; `closed` is a set of names. */
export function rowsOf(flows, { group, closed }) {
  const groupsOf = GROUPS[group];
  if (!groupsOf) return flows.map((flow) => ({ key: `flow ${flow.id}`, flow }));
  const groups = new Map();
  for (const flow of flows) {
    for (const name of groupsOf(flow)) {
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(flow);
    }
  }
  return [...groups.keys()].sort(names.compare).flatMap((name) => {
    const members = groups.get(name);
    const isOpen = !closed.has(name);
    const heading = { key: `group ${name}`, group: name, count: members.length, isOpen };
    return [heading, ...(isOpen ? members.map((flow) => ({ key: `flow ${flow.id} of ${name}`, flow })) : [])];
  });
}
