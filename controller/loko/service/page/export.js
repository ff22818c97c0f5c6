// What can be taken away: the flows in sight as CSV, everything as JSON, and requests that `loko plan` reads.

import { byId } from "./dom.js";

const FLOW = ["id", "source", "destination", "udp_source", "udp_destination", "rate_bps", "burst_bytes", "frame_bytes", "traffic_class"];
const MEASURED = ["sent", "received", "lost", "late", "min_ns", "p50_ns", "p99_ns", "max_ns"];

/** Text in quotation marks where need be; none that a spreadsheet would take for a formula. */
function cell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "number" ? String(value) : String(value).replace(/^[=+\-@\t\r]/, "'$&");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A line for each flow, after a line of names. */
export function csv(flows, delays) {
  const lines = flows.map((flow) => {
    const measured = delays[flow.id] ?? {};
    const path = flow.path.map((hop) => hop.switch).join(" ");
    return [
      ...FLOW.map((name) => flow[name]), flow.state, flow.broken.map(({ text }) => text).join("; "), flow.guarantee_ns, path, ...MEASURED.map((name) => measured[name]),
    ];
  });
  const names = [...FLOW, "state", "broken", "guarantee_ns", "path", ...MEASURED];
  return [names, ...lines].map((line) => `${line.map(cell).join(",")}\r\n`).join("");
}

/** The same flows as requests. */
export const requests = (flows) =>
  flows.map((flow) => Object.fromEntries(FLOW.map((name) => [name, flow[name]])));

function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** `taken()` gives { service, topology, state, shown, notes } as they are now. */
export function offerExport(taken) {
  const act = (id, name, type, text) =>
    byId(id).addEventListener("click", () => {
      const now = taken();
      save(`${now.service.lab}-${name}`, type, text(now));
      byId("export").open = false;
      byId("export").querySelector("summary").focus();
    });
  const asJson = (value) => `${JSON.stringify(value, null, 1)}\n`;
  act("export-csv", "flows.csv", "text/csv", ({ shown, state }) => csv(shown, state.delays));
  act("export-requests", "requests.json", "application/json", ({ shown }) => asJson(requests(shown)));
  act("export-json", "service.json", "application/json", ({ service, topology, state, notes }) =>
    asJson({
      exported: new Date().toISOString(),
      service, topology, flows: state.flows, switches: state.switches, delays: state.delays, notes,
    }));
}
