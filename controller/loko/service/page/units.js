// Numbers as people read them.

const figures = (value) => {
  const size = Math.abs(value);
  if (size >= 100) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  if (size >= 10) return value.toLocaleString("en", { maximumFractionDigits: 1 });
  return value.toLocaleString("en", { maximumFractionDigits: 2 });
};

/** Two decimals below 10 ms, so that columns of them line up. */
export function milliseconds(ns) {
  if (ns === null) return "none";
  if (ns >= 1e7) return `${figures(ns / 1e6)} ms`;
  return `${(ns / 1e6).toFixed(ns < 1e5 ? 3 : 2)} ms`;
}

export function rate(bps) {
  if (bps >= 1e6) return `${figures(bps / 1e6)} Mbit/s`;
  if (bps >= 1e3) return `${figures(bps / 1e3)} kbit/s`;
  return `${figures(bps)} bit/s`;
}

export const count = (number) => Math.round(number).toLocaleString("en");

/** A quantity in its unit, as the service names units. */
export function quantity(value, unit) {
  if (unit === "bit/s") return rate(value);
  if (unit === "ns") return milliseconds(value);
  return `${figures(value)} ${unit}`;
}

/** What is asked for: from what the form's field says, in its unit, and a limit as it can be typed there. */
export const request = {
  rate_bps: {
    read: (kbps) => Math.round(Number(kbps) * 1e3),
    limit: (bps) => `a rate of at most ${bps / 1e3} kbit/s`,
  },
  burst_bytes: {
    read: Number,
    limit: (bytes) => `a burst of at most ${bytes} bytes`,
  },
  deadline_ns: {
    read: (ms) => Math.round(Number(ms) * 1e6),
    limit: (ns) => `a deadline of at least ${ns / 1e6} ms`,
  },
};

/** When a flow with a slot sends, in words. */
export const sendSlotText = ({ slot, offset_ns: offset, period_ns: period }) =>
  `slot ${slot}, at ${milliseconds(offset)} of a base period, every ${milliseconds(period)}`;

/** Used of allowed, the unit once. */
export function share(used, allowed, unit) {
  if (unit === "bit/s" && allowed >= 1e3) {
    const mega = allowed >= 1e6;
    const scale = mega ? 1e6 : 1e3;
    return `${figures(used / scale)} of ${figures(allowed / scale)} ${mega ? "Mbit/s" : "kbit/s"}`;
  }
  if (unit === "ns") return `${figures(used / 1e6)} of ${figures(allowed / 1e6)} ms`;
  return `${figures(used)} of ${figures(allowed)} ${unit}`;
}

export const percent = (fraction) => `${Math.round(fraction * 100)} %`;

/** All nodes on the path of a flow, hosts included. */
export const nodesOf = (flow) => [flow.source, ...flow.path.map((hop) => hop.switch), flow.destination];

/** The nodes of each path that a flow's frames take: of two paths if they are sent twice. */
export const pathsOf = (flow) => {
  const second = flow.reserved?.second_copies;
  return second ? [nodesOf(flow), [flow.source, ...second.path, flow.destination]] : [nodesOf(flow)];
};

/** The switches that a flow's frames pass. */
export const switchesOf = (flow) => [...new Set(pathsOf(flow).flatMap((nodes) => nodes.slice(1, -1)))];

/** A cable's name, as the service has it. */
export const cableName = ({ a, b }) => `${a.node}:${a.port}-${b.node}:${b.port}`;
