// Small helpers. Text always goes in as text: nothing here, or anywhere, writes markup.

function byId(id) {
  return document.getElementById(id);
}

function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

function replace(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

// Four digits, or as many as wanted, without needless zeros.
function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text =
    size >= 1e6 || size < 1e-4 ? value.toExponential(2) : Number(value.toPrecision(digits)).toString();
  return text.replace("-", "−");
}

function signed(value) {
  return value > 0 ? `+${number(value, 3)}` : number(value, 3);
}

// Written out: the browser's own way loads its tables of languages first.
function whole(value) {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}

function percent(share) {
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${Number((100 * share).toFixed(share < 0.1 ? 1 : 0))} %`;
}

// A name that fits; the whole of it is in the title.
function label(text, limit = 28) {
  const cut = [...text];
  if (cut.length <= limit) return make("span", {}, text);
  return make("span", { title: text }, `${cut.slice(0, limit - 1).join("")}…`);
}

function say(text) {
  byId("live").textContent = text;
}

function tooltipText(...lines) {
  return draw("title", {}, lines.join("\n"));
}
