// The page: asks once what is served, then follows the service's events.

import { Detail } from "./detail.js";
import { byId, say, set } from "./dom.js";
import { offerExport } from "./export.js";
import { Failures } from "./failures.js";
import { FlowList } from "./flows.js";
import { Margin } from "./margin.js";
import { Notes } from "./notes.js";
import { Requests } from "./request.js";
import { SwitchList } from "./switches.js";
import { Picture } from "./topology.js";
import { milliseconds } from "./units.js";

const RETRY_MS = 2000;

class Page {
  /** `schedule` is the cycle of a service that gives slots; null if it admits. */
  constructor(service, topology, schedule) {
    // `through`: only flows through this switch are listed; `tried`: a flow that was asked about, not for.
    this.state = { switches: [], flows: [], delays: {}, chosen: null, through: null, limiting: null, tried: null, protection: null };
    const choose = (kind, name) => this.choose(kind, name);
    const release = (flow) => this.requests.release(flow);
    this.picture = new Picture(topology, choose);
    this.requests = new Requests({
      service, topology, schedule,
      limited: (limiting) => this.change({ limiting }),
      tried: (tried) => this.change({ tried }),
    });
    this.flows = new FlowList({ choose, release });
    this.detail = new Detail({ choose, release, measures: service.measures });
    this.switches = new SwitchList(choose);
    this.margin = schedule || service.baseline ? null : new Margin();
    this.failures = new Failures({ service, topology, call: (...request) => this.requests.call(...request) });
    this.notes = new Notes();
    offerExport(() => ({ service, topology, state: this.state, shown: this.flows.shown, notes: this.notes.values() }));
    const { scheme, options } = service;
    document.title = `${topology.lab} – Loko`;
    say(byId("title"), topology.title);
    const sizes = options["frame-bytes"] ? `, frames of ${options["frame-bytes"].replaceAll(",", ", ")} bytes` : "";
    const name = options.scheme === scheme ? scheme : `${options.scheme} (${scheme})`;
    const cycle = schedule
      ? `, ${schedule.slots} slots of ${milliseconds(schedule.slot_ns)} in ${milliseconds(schedule.base_period_ns)}`
      : "";
    say(byId("options"), `scheme ${name}${cycle}, at most ${options.entries} entries a switch${sizes}`);
    byId("baseline").hidden = !service.baseline;
    say(byId("baseline"), service.baseline ? `Scheme ${scheme} is a baseline, ${service.baseline}. Nothing is guaranteed here.` : "");
    this.measures = service.measures;
    say(byId("measures"), service.measures
      ? `Delays measured at ${service.measures}; quantiles are of the latest 2,000 packets.`
      : "Nothing measures delays here.");
    for (const key of document.querySelectorAll("[data-measured]")) key.hidden = !service.measures;
  }

  /** A flow, a switch (then only the flows through it are listed), or `through` none. Again: no longer. */
  choose(kind, name) {
    const { chosen } = this.state;
    if (kind === "through") {
      this.change({ through: null, chosen: chosen?.kind === "switch" ? null : chosen });
      return;
    }
    const isSame = chosen?.kind === kind && chosen.name === name;
    const through = kind === "switch" ? (isSame ? null : name) : this.state.through;
    this.change({ chosen: isSame ? null : { kind, name }, through, tried: null });
  }

  /** Changes are drawn together, once a frame at most. */
  change(values) {
    Object.assign(this.state, values);
    this.requests.flows = this.state.flows;
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.draw();
    });
  }

  draw() {
    this.picture.update(this.state);
    this.flows.update(this.state);
    this.detail.update(this.state);
    this.switches.update(this.state);
    this.margin?.update(this.state);
    this.failures.update(this.state);
    this.showHealth();
  }

  measured(delays) {
    this.state.delays = delays;
    if (this.isDue) return; // it is drawn with all else
    this.flows.measured(delays);
    this.detail.measured(delays);
  }

  showHealth() {
    const away = this.state.switches.filter(({ state }) => state === "away").length;
    const late = this.state.switches.filter(({ complete }) => !complete).length;
    const broken = this.state.flows.filter((flow) => flow.broken.length).length;
    const amiss = [
      ...(away ? [`${away} of ${this.state.switches.length} switches away`] : []),
      ...(broken ? [`${broken} ${broken === 1 ? "promise" : "promises"} broken`] : []),
    ].join(", ");
    say(byId("health"), amiss || (late ? "setting tables" : "every switch as it should be"));
    set(byId("health"), { class: `badge ${amiss ? "bad" : late ? "busy" : "good"}` });
  }
}

function follow(page) {
  const events = new EventSource("/v1/events");
  const on = (name, act) => events.addEventListener(name, (event) => act(JSON.parse(event.data)));
  on("switches", (switches) => page.change({ switches }));
  on("flows", (flows) => page.change({ flows }));
  on("protection", (protection) => page.change({ protection }));
  on("delays", (delays) => page.measured(delays));
  on("note", (note) => page.notes.add([note]));
  events.addEventListener("open", () => {
    banner(null);
    page.notes.load();
  });
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
