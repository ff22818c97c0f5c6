// Ask for a flow and release one, and say what became of it.

import { byId, html } from "./dom.js";
import { milliseconds, quantity, request, turnText } from "./units.js";

const FIRST_SOURCE_PORT = 5000;
const FIRST_DESTINATION_PORT = 6000;

/** What would be granted, in the units of the form, to the last digit: it is typed in. */
function asTyped(changes) {
  return Object.entries(changes ?? {}).map(([name, value]) => request[name].limit(value)).join(" and ");
}

export class Requests {
  /** `limited(switch)` is called with the switch that limited a refused flow, or null. */
  constructor({ service, topology, schedule, limited }) {
    this.schedule = schedule;
    this.limited = limited;
    this.flows = [];
    this.form = byId("ask");
    this.answer = byId("answer");
    const fields = this.form.elements;
    const hosts = topology.hosts.map(({ name }) => name);
    for (const field of [fields.source, fields.destination]) {
      field.replaceChildren(...hosts.map((name) => html("option", { value: name }, name)));
    }
    fields.destination.selectedIndex = Math.max(0, Math.ceil(hosts.length / 2));
    const sizes = (service.options["frame-bytes"] ?? "306").split(",");
    fields.frame.replaceChildren(...sizes.map((size) => html("option", { value: size }, size)));
    fields.burst.value = sizes.at(-1);
    byId("token").hidden = !service.needs_token;
    for (const label of this.form.querySelectorAll("[data-grants]")) {
      label.hidden = label.dataset.grants !== service.grants;
      label.querySelector("input").disabled = label.hidden;
    }
    if (schedule) this.form.querySelector("button[type=submit]").textContent = "Give a slot";
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
  }

  /** The body of the request: what the fields say, and free ports where they are left out. */
  wanted() {
    const fields = this.form.elements;
    const flow = {
      source: fields.source.value,
      destination: fields.destination.value,
      frame_bytes: Number(fields.frame.value),
    };
    if (this.schedule) flow.period_ns = Number(fields.cycles.value) * this.schedule.base_period_ns;
    else {
      flow.rate_bps = request.rate_bps.read(fields.rate.value);
      flow.burst_bytes = Number(fields.burst.value);
      if (fields.deadline.value) flow.deadline_ns = request.deadline_ns.read(fields.deadline.value);
    }
    const used = this.flows.filter(({ source, destination }) => source === flow.source && destination === flow.destination);
    const free = (field, first) => {
      const taken = new Set(used.map((one) => one[field]));
      let port = first;
      while (taken.has(port)) port += 1;
      return port;
    };
    flow.udp_source = Number(fields.udp_source.value) || free("udp_source", FIRST_SOURCE_PORT);
    flow.udp_destination = Number(fields.udp_destination.value) || free("udp_destination", FIRST_DESTINATION_PORT);
    flow.id = fields.id.value.trim() || this.name(flow);
    return flow;
  }

  name({ source, destination }) {
    const taken = new Set(this.flows.map(({ id }) => id));
    const plain = `${source}-${destination}`.replace(/[^A-Za-z0-9._:-]/g, "").slice(0, 48) || "flow";
    if (!taken.has(plain)) return plain;
    let number = 2;
    while (taken.has(`${plain}-${number}`)) number += 1;
    return `${plain}-${number}`;
  }

  async submit() {
    const button = this.form.querySelector("button[type=submit]");
    const flow = this.wanted();
    this.limited(null);
    button.disabled = true;
    try {
      const response = await this.call("POST", this.schedule ? "/v1/slots" : "/v1/flows", flow);
      const values = await response.json();
      if (response.ok) this.granted(values);
      else this.refused(values.error, flow.id);
    } catch (problem) {
      this.show("bad", "No answer", String(problem.message ?? problem));
    } finally {
      button.disabled = false;
    }
  }

  async release(id, button) {
    button.disabled = true;
    try {
      const response = await this.call("DELETE", `/v1/flows/${encodeURIComponent(id)}`);
      if (response.status === 202) {
        const { waiting_for: waiting } = await response.json();
        this.show("good", `${id} is released`, `It is removed from ${waiting.join(", ")} as soon as it is back.`);
      } else if (response.ok) this.show("good", `${id} is released`, "What it used is free as soon as nothing that it sent can be waiting.");
      else this.refused((await response.json()).error, id);
    } catch (problem) {
      this.show("bad", "No answer", String(problem.message ?? problem));
    } finally {
      button.disabled = false;
    }
  }

  call(method, path, body) {
    const headers = { "Content-Type": "application/json" };
    const token = this.form.elements.token.value;
    if (token) headers.Authorization = `Bearer ${token}`;
    return fetch(path, { method, headers, body: body && JSON.stringify(body) });
  }

  granted(flow) {
    const path = flow.path.map((hop) => hop.switch).join(" › ");
    const title = flow.turn ? `${flow.id} has ${turnText(flow.turn)}` : `${flow.id} is admitted`;
    this.show("good", title, `No frame takes longer than ${milliseconds(flow.guarantee_ns)} by ${path}.`);
    this.form.elements.id.value = "";
  }

  refused(error, id) {
    if (error.code === "no-token") {
      byId("token").hidden = false;
      this.form.elements.token.focus();
      this.show("bad", "A token is needed", "Whoever runs the service has it; then try again.");
      return;
    }
    if (error.code !== "does-not-fit") {
      this.show("bad", `${id} is not possible`, error.message);
      return;
    }
    this.limited(error.switch);
    const lines = [
      `${error.switch} has not enough ${error.quantity}: ${quantity(error.used, error.unit)} used`
        + ` + ${quantity(error.requested, error.unit)} asked for`
        + ` > ${quantity(error.allowed, error.unit)} allowed.`,
    ];
    const remedy = asTyped(error.would_fit) || error.remedy;
    lines.push(remedy ? `To make it fit: ${remedy}.` : "No smaller rate or burst fits beside the flows that are there.");
    if (error.paths > 1) lines.push(`None of ${error.paths} paths fits.`);
    this.show("bad", `${id} does not fit`, ...lines);
  }

  show(kind, title, ...lines) {
    this.answer.replaceChildren(
      html("div", { class: `answer ${kind}` }, html("strong", {}, title), ...lines.map((line) => html("p", {}, line))),
    );
  }
}
