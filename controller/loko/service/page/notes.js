// What happened: what the service has kept of it, and what it tells from then on.

import { byId, html } from "./dom.js";

const MOST_SHOWN = 200;

export class Notes {
  constructor() {
    this.known = new Map();
    this.log = byId("log");
    this.kind = byId("note-kind");
    this.kind.addEventListener("change", () => this.draw());
  }

  /** What the service has kept; none of it twice. */
  async load() {
    try {
      const response = await fetch("/v1/notes");
      if (!response.ok) return;
      this.add((await response.json()).notes);
    } catch {
      // The service is away; the stream comes back, and this with it.
    }
  }

  add(notes) {
    const fresh = notes.filter(({ number }) => !this.known.has(number));
    if (!fresh.length) return;
    const last = Math.max(0, ...this.known.keys());
    for (const note of fresh) this.known.set(note.number, note);
    const later = fresh.every(({ number }) => number > last);
    if (!later) this.draw();
    else for (const note of fresh) this.prepend(note);
    byId("no-notes").hidden = this.known.size > 0;
  }

  values() {
    return [...this.known.values()].sort((a, b) => a.number - b.number);
  }

  isShown({ kind, warning }) {
    const wanted = this.kind.value;
    return wanted === "all" || (wanted === "warning" ? warning : kind === wanted);
  }

  draw() {
    this.log.replaceChildren();
    for (const note of this.values().filter((one) => this.isShown(one)).slice(-MOST_SHOWN)) this.prepend(note);
  }

  prepend(note) {
    if (!this.isShown(note)) return;
    const at = new Date(note.at_ms);
    const isToday = at.toDateString() === new Date().toDateString();
    const day = isToday ? "" : `${at.toLocaleDateString("en-CA")} `;
    const time = html("time", { datetime: at.toISOString() }, `${day}${at.toLocaleTimeString("en-GB")}`);
    this.log.prepend(html("li", { class: note.warning ? "warning" : null }, time, " ", words(note)));
    while (this.log.children.length > MOST_SHOWN) this.log.lastElementChild.remove();
  }
}

function words({ kind, name, text }) {
  return {
    switch: `${name}: ${text}`,
    note: `${name} ${text}`,
    refusal: `flow ${name} is refused: ${text}`,
  }[kind] ?? `${kind} ${name} ${text}`;
}
