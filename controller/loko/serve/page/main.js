// The page: asks once what is served, then follows the service's events.

import { byId, html, say, set } from "./dom.js";
import { FlowList } from "./flows.js";
import { Requests } from "./request.js";
import { SwitchList } from "./switches.js";
import { Picture } from "./topology.js";
import { milliseconds } from "./units.js";

const MOST_NOTES = 100;
const RETRY_MS = 2000;

class Page {
  /** `schedule` is the cycle of a service that gives slots; null if it admits. */
  constructor(service, topology, schedule) {
    this.state = { switches: [], flows: [], delays: {}, chosen: null, limiting: null };
    const choose = (kind, name) => this.choose(kind, name);
    this.picture = new Picture(topology, choose);
    this.requests = new Requests({ service, topology, schedule, limited: (name) => this.change({ limiting: name }) });
    this.flows = new FlowList({ choose, release: (id, button) => this.requests.release(id, button) });
    this.switches = new SwitchList(choose);
    const { scheme, options } = service;
    document.title = `${topology.lab} – Loko`;
    say(byId("title"), topology.title);
    const sizes = options["frame-bytes"] ? `, frames of ${options["frame-bytes"].replaceAll(",", ", ")} bytes` : "";
    const name = options.scheme === scheme ? scheme : `${options.scheme} (${scheme})`;
    const cycle = schedule
      ? `, ${schedule.slots} slots of ${milliseconds(schedule.slot_ns)} in ${milliseconds(schedule.base_period_ns)}`
      : "";
    say(byId("options"), `scheme ${name}${cycle}, at most ${options.entries} entries a switch${sizes}`);
    this.measures = service.measures;
    say(byId("measures"), service.measures
      ? `Delays measured at ${service.measures}; the red line is the guarantee, quantiles are of the latest 2,000 packets.`
      : "The red line is the guarantee, the shades what each switch may take of it. Nothing measures delays here.");
  }

  choose(kind, name) {
    const { chosen } = this.state;
    const isSame = chosen?.kind === kind && chosen.name === name;
    this.change({ chosen: isSame ? null : { kind, name } });
  }

  change(values) {
    Object.assign(this.state, values);
    this.picture.update(this.state);
    this.flows.update(this.state);
    this.switches.update(this.state);
    this.requests.flows = this.state.flows;
    this.showHealth();
  }

  measured(delays) {
    this.state.delays = delays;
    this.flows.measured(delays);
  }

  showHealth() {
    const away = this.state.switches.filter(({ state }) => state === "away").length;
    const late = this.state.switches.filter(({ complete }) => !complete).length;
    const text = away
      ? `${away} of ${this.state.switches.length} switches away`
      : late ? "setting tables" : "every switch as it should be";
    say(byId("health"), text);
    set(byId("health"), { class: `badge ${away ? "bad" : late ? "busy" : "good"}` });
  }

  note({ kind, name, text, warning }) {
    const now = new Date();
    const time = html("time", { datetime: now.toISOString() }, now.toLocaleTimeString("en-GB"));
    const what = { switch: `${name}: ${text}`, note: `${name} ${text}` }[kind] ?? `${kind} ${name} ${text}`;
    const log = byId("log");
    byId("no-notes").hidden = true;
    log.prepend(html("li", { class: warning ? "warning" : null }, time, " ", what));
    while (log.children.length > MOST_NOTES) log.lastElementChild.remove();
  }
}

function follow(page) {
  const events = new EventSource("/v1/events");
  const on = (name, act) => events.addEventListener(name, (event) => act(JSON.parse(event.data)));
  on("switches", (switches) => page.change({ switches }));
  on("flows", (flows) => page.change({ flows }));
  on("delays", (delays) => page.measured(delays));
  on("note", (note) => page.note(note));
  events.addEventListener("open", () => banner(null));
  events.addEventListener("error", () => {
    banner("The service does not answer; trying again. What is shown may be old.");
    if (events.readyState !== EventSource.CLOSED) return;
    setTimeout(() => follow(page), RETRY_MS);
  });
}

function banner(text) {
  say(byId("banner"), text ?? "");
  byId("banner").hidden = text === null;
}

async function answerOf(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}

async function start() {
  try {
    const [service, topology] = await Promise.all([answerOf("/v1/service"), answerOf("/v1/topology")]);
    const schedule = service.grants === "slots" ? await answerOf("/v1/schedule") : null;
    follow(new Page(service, topology, schedule));
  } catch {
    banner("The service does not answer; trying again.");
    setTimeout(start, RETRY_MS);
  }
}

start();
