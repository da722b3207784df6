// The state of the page, and what follows when it changes.

const state = {
  layer: 0,
  mode: "",
  target: 0,
  share: 100,
  selected: -1,
  hovered: -1,
  why: -1,
  theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
  themeChosen: false,
};

function currentMode() {
  return view.modes.find((mode) => mode.key === state.mode) || view.modes[0];
}

// Change some of the state; only what depends on it is done again.
function change(changes) {
  const before = { ...state };
  Object.assign(state, changes);
  if (before.mode !== state.mode)
    state.why = state.mode.startsWith("why-") ? Number(state.mode.slice(4)) : -1;
  const changed = (...names) => names.some((name) => before[name] !== state[name]);
  if (changed("theme")) applyTheme();
  if (changed("target")) refreshModes();
  if (changed("layer", "mode", "theme", "target", "selected", "why")) refreshNodes();
  if (changed("layer")) refreshEdges();
  if (changed("layer", "share")) refreshShare();
  if (changed("layer", "selected", "why", "theme", "share")) refreshGroups();
  if (changed("layer", "selected", "theme", "target")) refreshCard();
  if (changed("layer", "theme")) {
    refreshActionPanels();
    refreshGroupings();
  }
  if (changed("target")) refreshPredictions();
  if (changed("layer")) {
    byId("layer").value = String(state.layer + 1);
    say(`Layer ${state.layer + 1} of ${layerCount}`);
  }
  refreshLegend();
  requestDraw();
}

function choose(node, { center = false, reveal = center } = {}) {
  hover(-1);
  // An explanation stays as long as its node is the chosen one.
  const explained = state.why >= 0 && content.explanations[state.why].node === node;
  change({ selected: node, ...(explained ? {} : { why: -1 }) });
  if (node < 0) return;
  const { camera } = view;
  const [px, py] = camera.toScreen(nodes.x[node], nodes.y[node]);
  const outside = px < 20 || py < 20 || px > camera.width - 20 || py > camera.height - 20;
  if (center || outside) {
    moveCamera(() =>
      camera.center(nodes.x[node], nodes.y[node], center ? Math.max(camera.scale, CLOSE) : camera.scale),
    );
  }
  if (byId("node-section")) byId("node-section").open = true;
  if (reveal) byId("panel").scrollTop = 0;
  say(`${nodeTitle(node).slice(0, 80)}, predicted ${outcomeText(node).slice(0, 80)}`);
}

function explainNode(k) {
  change({ mode: `why-${k}`, why: k });
  byId("colour").value = state.mode;
  choose(content.explanations[k].node, { center: true });
}

function applyTheme() {
  document.documentElement.dataset.theme = state.theme;
  byId("theme").textContent = state.theme === "dark" ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", `Switch to ${state.theme === "dark" ? "light" : "dark"} colours`);
}

function refreshModes() {
  view.modes = colourModes(content.targets[state.target]);
  if (!view.modes.some((mode) => mode.key === state.mode)) state.mode = view.modes[0].key;
  replace(
    byId("colour"),
    view.modes.map((mode) =>
      make("option", { value: mode.key, selected: mode.key === state.mode }, mode.label),
    ),
  );
}
