// The data of the page: read once, never changed.

const HALF = makeHalfTable();

// The finite values of half precision that are not negative, by their bit patterns.
function makeHalfTable() {
  const table = new Float32Array(31 << 10);
  for (let exponent = 0; exponent < 31; exponent++) {
    const unit = 2 ** (Math.max(exponent, 1) - 25);
    const start = exponent ? 1024 : 0;
    for (let fraction = 0; fraction < 1024; fraction++)
      table[(exponent << 10) | fraction] = unit * (start + fraction);
  }
  return table;
}

const ARRAYS = { Uint8Array, Int16Array, Uint16Array, Uint32Array, Float32Array };

function unpack(packed) {
  return new ARRAYS[packed.type](toBytes(packed.data).buffer);
}

function toBytes(data) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(data); // in browsers from 2025 on
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// Every packed array inside a value becomes a typed array; strengths keep their largest value.
function unpackAll(value) {
  if (Array.isArray(value)) return value.map(unpackAll);
  if (value === null || typeof value !== "object") return value;
  if (typeof value.type === "string" && typeof value.data === "string") {
    const array = unpack(value);
    return "largest" in value ? { codes: array, largest: value.largest } : array;
  }
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, unpackAll(part)]));
}

const content = unpackAll(JSON.parse(document.getElementById("data").textContent));
const nodes = content.nodes;
const edges = content.edges;
const actions = content.actions;
const layerCount = actions ? actions.layers.length : 0;

// The edges at each node: those of node i are list[start[i]] to list[start[i + 1] - 1].
function groupEdges(ends) {
  const start = new Uint32Array(nodes.count + 1);
  for (let e = 0; e < ends.length; e++) start[ends[e] + 1]++;
  for (let i = 0; i < nodes.count; i++) start[i + 1] += start[i];
  const next = start.slice();
  const list = new Uint32Array(ends.length);
  for (let e = 0; e < ends.length; e++) list[next[ends[e]]++] = e;
  return { start, list };
}

function lazily(make) {
  let value;
  return () => (value === undefined ? (value = make()) : value);
}

const edgesInto = lazily(() => groupEdges(edges.target));
const edgesOutOf = lazily(() => groupEdges(edges.source));

function edgesAt(groups, node) {
  return groups.list.subarray(groups.start[node], groups.start[node + 1]);
}

function flowOf(layer, edge) {
  const flow = actions.layers[layer].flow;
  return HALF[flow.codes[edge]] * flow.largest;
}

// Edges from weak to strong. Codes sort like values, so that counting them is enough.
const orders = new Map();
function edgeOrder(layer) {
  if (!orders.has(layer)) {
    const codes = actions.layers[layer].flow.codes;
    const start = new Uint32Array(HALF.length + 1);
    for (let e = 0; e < codes.length; e++) start[codes[e] + 1]++;
    for (let code = 0; code < HALF.length; code++) start[code + 1] += start[code];
    const order = new Uint32Array(codes.length);
    for (let e = 0; e < codes.length; e++) order[start[codes[e]]++] = e;
    orders.set(layer, order);
  }
  return orders.get(layer);
}

function nodeLabel(node) {
  return nodes.names ? nodes.names[node] : String(nodes.id[node]);
}

function nodeTitle(node) {
  return nodes.names ? nodes.names[node] : `Node ${nodes.id[node]}`;
}

const bounds = (() => {
  const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
  for (let i = 0; i < nodes.count; i++) {
    box.left = Math.min(box.left, nodes.x[i]);
    box.right = Math.max(box.right, nodes.x[i]);
    box.top = Math.min(box.top, nodes.y[i]);
    box.bottom = Math.max(box.bottom, nodes.y[i]);
  }
  return nodes.count ? box : { left: 0, right: 0, top: 0, bottom: 0 };
})();
