// Numbers as people read them.

const figures = (value) => {
  const size = Math.abs(value);
  if (size >= 100) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  if (size >= 10) return value.toLocaleString("en", { maximumFractionDigits: 1 });
  return value.toLocaleString("en", { maximumFractionDigits: 2 });
};

/** Two decimals below 10 ms, so that columns of them line up. */
export function milliseconds(ns) {
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
