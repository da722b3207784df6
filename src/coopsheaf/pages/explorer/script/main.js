// Puts everything together.

function headline() {
  const { training, graph } = content;
  byId("title").textContent = content.title;
  const score = training.scores.test ?? training.scores.val;
  const part = training.scores.test === null ? "val" : "test";
  const shown = nodes.count < graph.nodes ? `${whole(nodes.count)} of ` : "";
  byId("facts").textContent = [
    score === null ? null : `${part} ${training.metric} ${score.toFixed(3)}`,
    `${shown}${whole(graph.nodes)} nodes`,
    `${whole(graph.edges)} directed edges`,
    layerCount ? `${layerCount} layers` : null,
  ]
    .filter(Boolean)
    .join(" · ");
  const canvas = byId("canvas");
  canvas.setAttribute("aria-label", `Graph of ${whole(nodes.count)} nodes and ${whole(edges.count)} edges`);
  const notes = [...graph.notes, ...(actions ? [] : [content.silence])];
  byId("notes").hidden = notes.length === 0;
  byId("notes").textContent = notes.join(" ");
}

function start() {
  applyTheme();
  headline();
  state.share = edges.count > 4000 ? 50 : 100;
  byId("share").value = String(state.share);
  state.selected = content.opening.node;
  state.layer = content.opening.layer;
  refreshModes();
  makePainter();
  view.picker = new Picker();
  setUpControls();
  byId("layer").value = String(state.layer + 1);
  refreshShare();
  refreshLegend();
  resize();
  byId("canvas").addEventListener("webglcontextlost", (event) => event.preventDefault());
  byId("canvas").addEventListener("webglcontextrestored", () => {
    makePainter();
    requestDraw();
  });
  new ResizeObserver(resize).observe(byId("picture"));
  setUpSearch();
}

// The picture first; the numbers when it stands.
function afterFirstPicture() {
  performance.mark("first-picture");
  setTimeout(buildPanels, 0);
}

start();

// For scripts and tests: where things are and what is shown.
window.explorer = Object.freeze({
  content,
  state: () => ({
    ...state,
    renderer: view.painter.kind,
    drawn: view.drawn,
    resting: !view.waiting && !view.moving,
    scale: view.camera.scale,
    x: view.camera.x,
    y: view.camera.y,
  }),
  labels: () => labelled.slice(),
  screen: (node) => view.camera.toScreen(nodes.x[node], nodes.y[node]),
  select: (node) => choose(node, { center: true }),
});
