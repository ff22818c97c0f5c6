// Elements of text and attributes only: nothing that the service says is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/** An HTML element; strings among the children become text. */
export const html = (tag, attributes = {}, ...children) =>
  filled(document.createElement(tag), attributes, children);

/** An SVG element. */
export const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

/** Set attributes; null removes one. */
export const set = (node, attributes) => filled(node, attributes, []);

export const byId = (id) => document.getElementById(id);

/** Write a text only if it is another, so that screen readers do not repeat it. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Keep one child of `list` for each item, in their order, by key. Children that stay keep focus and state.
 * `make(item)` gives an object with a `node` and an `update(item)`; `kept` is the map of the last call.
 */
export function reconcile(list, kept, items, keyOf, make) {
  const now = new Map();
  for (const item of items) {
    const key = keyOf(item);
    const part = kept.get(key) ?? make(item);
    part.update(item);
    now.set(key, part);
  }
  for (const [key, part] of kept) if (!now.has(key)) part.node.remove();
  let place = list.firstElementChild;
  for (const part of now.values()) {
    if (part.node === place) place = place.nextElementSibling;
    else list.insertBefore(part.node, place);
  }
  return now;
}
