// What the painters are given: nodes, edges and marks, when they change.

function refreshNodes() {
  view.paint = paintNodes(currentMode(), state.layer, state.theme);
  const { rgba, shape } = view.paint;
  if (state.selected >= 0 && state.why < 0) fade(rgba, state.selected);
  view.painter.setNodes(rgba, shape);
}

// All nodes step back but one and its neighbours.
function fade(rgba, node) {
  const stay = new Set([node]);
  for (const edge of edgesAt(edgesInto(), node)) stay.add(edges.source[edge]);
  for (const edge of edgesAt(edgesOutOf(), node)) stay.add(edges.target[edge]);
  for (let i = 0; i < nodes.count; i++) if (!stay.has(i)) rgba[4 * i + 3] = 95;
}

// All edges of a layer as the painters take them, from weak to strong.
function refreshEdges() {
  const array = new Float32Array(edges.count * EDGE_FLOATS);
  const order = actions ? edgeOrder(state.layer) : null;
  view.strong = actions ? strongShare(state.layer) : 1;
  for (let k = 0; k < edges.count; k++) writeEdge(array, k, order ? order[k] : k);
  view.painter.setEdges(array);
}

// Strengths on the page are shares of a flow that few exceed: one outlier does not pale the rest.
function strongShare(layer) {
  const order = edgeOrder(layer);
  const codes = actions.layers[layer].flow.codes;
  return order.length ? HALF[codes[order[Math.floor(0.99 * (order.length - 1))]]] || 1 : 1;
}

function writeEdge(array, k, edge) {
  const from = edges.source[edge];
  const to = edges.target[edge];
  const at = k * EDGE_FLOATS;
  array[at] = nodes.x[from];
  array[at + 1] = nodes.y[from];
  array[at + 2] = nodes.x[to];
  array[at + 3] = nodes.y[to];
  array[at + 4] = actions
    ? Math.min(1, HALF[actions.layers[state.layer].flow.codes[edge]] / view.strong)
    : 0.5;
}

// Where drawing begins: the share wanted, equals included, edges that carry nothing left out.
function refreshShare() {
  view.first = 0;
  if (!actions) return;
  const order = edgeOrder(state.layer);
  const codes = actions.layers[state.layer].flow.codes;
  const m = order.length;
  let first = m - Math.round((m * state.share) / 100);
  while (first > 0 && first < m && codes[order[first - 1]] === codes[order[first]]) first--;
  while (first < m && codes[order[first]] === 0) first++;
  view.first = first;
  const least = first < m ? `≥ ${number(flowOf(state.layer, order[first]))}` : "none";
  byId("share-value").textContent = first < m ? `${least} · ${whole(m - first)} edges` : "no edges";
  byId("share").setAttribute("aria-valuetext", `${state.share} percent of the edges, flow ${least}`);
}

function refreshGroups() {
  const groups = [];
  const palette = PALETTES[state.theme];
  const group = (list, colour) => {
    const array = new Float32Array(list.length * EDGE_FLOATS);
    if (actions)
      list.sort(
        (a, b) => actions.layers[state.layer].flow.codes[a] - actions.layers[state.layer].flow.codes[b],
      );
    list.forEach((edge, k) => writeEdge(array, k, edge));
    if (list.length) groups.push({ array, colour: parseColour(palette[colour]) });
  };
  if (state.why >= 0) {
    groups.push(...pathGroups(content.explanations[state.why], palette));
  } else if (state.selected >= 0) {
    const carries = (edge) => !actions || actions.layers[state.layer].flow.codes[edge] > 0;
    group(Array.from(edgesAt(edgesInto(), state.selected)).filter(carries), "blue");
    group(Array.from(edgesAt(edgesOutOf(), state.selected)).filter(carries), "orange");
  }
  view.painter.setGroups(groups);
}

function pathGroups(why, palette) {
  const most = Math.max(...why.paths.map((path) => path.strength), 1e-30);
  const hops = [];
  for (const path of why.paths) {
    for (let k = 0; k + 1 < path.nodes.length; k++) {
      const [from, to] = [path.nodes[k], path.nodes[k + 1]];
      if (from < 0 || to < 0) continue;
      hops.push(nodes.x[from], nodes.y[from], nodes.x[to], nodes.y[to], Math.sqrt(path.strength / most));
    }
  }
  return hops.length ? [{ array: new Float32Array(hops), colour: parseColour(palette.purple) }] : [];
}
