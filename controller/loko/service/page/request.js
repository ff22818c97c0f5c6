// Ask for a flow, or what one would get; release one, and take that back; and say what became of it.

import { byId, html } from "./dom.js";
import { milliseconds, percent, quantity, request, sendSlotText } from "./units.js";

const FIRST_SOURCE_PORT = 5000;
const FIRST_DESTINATION_PORT = 6000;
const MOST_TRIES = 10;

/** What would be granted, in the units of the form, to the last digit: it is typed in. */
function asTyped(changes) {
  return Object.entries(changes ?? {}).map(([name, value]) => request[name].limit(value)).join(" and ");
}

export class Requests {
  /**
   * `limited(switch)` is called with the switch that limited a refused flow, or null; `tried(flow)` with what a flow
   * would get, or null.
   */
  constructor({ service, topology, schedule, limited, tried }) {
    Object.assign(this, { schedule, limited, tried });
    this.dialog = byId("sure");
    this.flows = [];
    this.form = byId("ask");
    this.answer = byId("answer");
    const fields = this.form.elements;
    const hosts = topology.hosts.map(({ name }) => name);
    for (const field of [fields.source, fields.destination]) {
      field.replaceChildren(...hosts.map((name) => html("option", { value: name }, name)));
    }
    fields.destination.selectedIndex = Math.max(0, Math.ceil(hosts.length / 2));
    // Some sizes are for some hosts only: 306,1500@H1+H2.
    const declared = (service.options["frame-bytes"] ?? "306").split(",").map((size) => size.split("@")[0]);
    const sizes = [...new Set(declared)];
    fields.frame.replaceChildren(...sizes.map((size) => html("option", { value: size }, size)));
    fields.burst.value = sizes.at(-1);
    byId("token").hidden = !service.needs_token;
    byId("protection-choice").hidden = !service.options.survive;
    const classes = Array.from({ length: Number(service.options.classes ?? 1) }, (_, place) => String(place + 1));
    byId("class-choice").hidden = classes.length === 1;
    fields.traffic_class.replaceChildren(...classes.map((name) => html("option", { value: name }, name)));
    for (const label of this.form.querySelectorAll("[data-grants]")) {
      label.hidden = label.dataset.grants !== service.grants;
      label.querySelector("input").disabled = label.hidden;
    }
    if (schedule) this.form.querySelector("button[type=submit]").textContent = "Give a slot";
    byId("what-if").addEventListener("click", () => {
      if (this.form.reportValidity()) this.tryOut();
    });
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
      flow.traffic_class = Number(fields.traffic_class.value);
      if (fields.deadline.value) flow.deadline_ns = request.deadline_ns.read(fields.deadline.value);
      if (fields.protection.value) flow.protection = fields.protection.value;
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

  submit() {
    const flow = this.wanted();
    return this.busy(this.form.querySelector("button[type=submit]"), async () => {
      const response = await this.call("POST", this.schedule ? "/v1/slots" : "/v1/flows", flow);
      const values = await response.json();
      if (response.ok) this.granted(values);
      else this.refused(values.error, flow.id);
    });
  }

  /** Ask what the flow would get, and change nothing. */
  tryOut() {
    const flow = this.wanted();
    return this.busy(byId("what-if"), async () => {
      const response = await this.call("POST", `/v1/what-if/${this.schedule ? "slot" : "flow"}`, flow);
      const values = await response.json();
      if (response.ok) this.would(values);
      else this.refused(values.error, flow.id);
    });
  }

  would(flow) {
    this.tried(flow);
    const path = flow.path.map((hop) => hop.switch).join(" › ");
    const fullest = flow.switches.map(({ name, use }) => {
      const share = use.reduce((most, one) => (one.would_use / one.allowed > most.would_use / most.allowed ? one : most));
      return `${name}: ${share.quantity} ${percent(share.used / share.allowed)} → ${percent(share.would_use / share.allowed)}`;
    });
    const title = flow.send_slot ? `${flow.id} would get ${sendSlotText(flow.send_slot)}` : `${flow.id} would be admitted`;
    this.show("good", title,
      `No frame would take longer than ${milliseconds(flow.guarantee_ns)} by ${path}. Nothing is reserved.`,
      `Fullest then: ${fullest.join(", ")}.`);
  }

  /** Release a flow if that is meant. It can be taken back: by asking for the same again. */
  release(flow) {
    byId("sure-title").textContent = `Release ${flow.id}?`;
    const close = (event) => {
      if (event.submitter?.value === "release") this.reallyRelease(flow);
    };
    const form = this.dialog.querySelector("form");
    form.onsubmit = close;
    this.dialog.showModal();
  }

  reallyRelease(flow) {
    return this.busy(null, async () => {
      const response = await this.call("DELETE", `/v1/flows/${encodeURIComponent(flow.id)}`);
      if (response.status === 202) {
        const { waiting_for: waiting } = await response.json();
        this.show("good", `${flow.id} is released`, `It is removed from ${waiting.join(", ")} as soon as it is back.`);
      } else if (response.ok) {
        this.show("good", `${flow.id} is released`, "What it used is free as soon as nothing that it sent can be waiting.");
        this.offerUndo(flow);
      } else this.refused((await response.json()).error, flow.id);
    });
  }

  offerUndo(flow) {
    const undo = html("button", { type: "button", class: "quiet" }, "Undo");
    undo.setAttribute("aria-label", `Undo the release of ${flow.id}`);
    undo.addEventListener("click", () => this.busy(undo, () => this.again(flow)));
    this.answer.firstElementChild.append(undo);
  }

  /** Ask for a released flow as it was, on its path; what it left in queues may have to be waited for. */
  async again(flow) {
    const wanted = Object.fromEntries(
      ["id", "source", "destination", "udp_source", "udp_destination", "frame_bytes"].map((name) => [name, flow[name]]),
    );
    if (flow.send_slot) wanted.period_ns = flow.send_slot.period_ns;
    else Object.assign(wanted, {
      rate_bps: flow.rate_bps, burst_bytes: flow.burst_bytes, traffic_class: flow.traffic_class,
      path: flow.path.length ? flow.path.map((hop) => hop.switch) : null,
    });
    if (flow.reserved) wanted.protection = flow.reserved.protection;
    for (let tries = 1; ; tries += 1) {
      const response = await this.call("POST", flow.send_slot ? "/v1/slots" : "/v1/flows", wanted);
      const values = await response.json();
      if (response.ok) {
        this.granted(values, "again ");
        return;
      }
      const wait = values.error.wait_ms;
      if (!wait || tries === MOST_TRIES) {
        this.refused(values.error, flow.id);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  /** Do something that asks the service, with its button switched off meanwhile. */
  async busy(button, act) {
    this.limited(null);
    this.tried(null);
    const hadFocus = button !== null && document.activeElement === button;
    if (button) button.disabled = true;
    try {
      await act();
    } catch (problem) {
      this.show("bad", "No answer", String(problem.message ?? problem));
    } finally {
      if (button) button.disabled = false;
      if (hadFocus && button.isConnected) button.focus();
    }
  }

  call(method, path, body) {
    const headers = { "Content-Type": "application/json" };
    const token = this.form.elements.token.value;
    if (token) headers.Authorization = `Bearer ${token}`;
    return fetch(path, { method, headers, body: body && JSON.stringify(body) });
  }

  granted(flow, again = "") {
    const path = flow.path.map((hop) => hop.switch).join(" › ");
    const title = flow.send_slot ? `${flow.id} has ${sendSlotText(flow.send_slot)}` : `${flow.id} is ${again}admitted`;
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
    const suggestion = asTyped(error.would_fit) || error.suggestion;
    lines.push(suggestion ? `To make it fit: ${suggestion}.` : "No smaller rate or burst fits beside the flows that are there.");
    if (error.hint) lines.push(`Whoever runs the service: ${error.hint}.`);
    if (error.paths > 1) lines.push(`None of ${error.paths} paths fits.`);
    this.show("bad", `${id} does not fit`, ...lines);
  }

  show(kind, title, ...lines) {
    this.answer.replaceChildren(
      html("div", { class: `answer ${kind}` }, html("strong", {}, title), ...lines.map((line) => html("p", {}, line))),
    );
  }
}
