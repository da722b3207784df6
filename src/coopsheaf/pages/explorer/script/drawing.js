// When the picture is drawn, with what, and how it keeps pace with the hand that moves it.

const GHOSTS = 5000; // in graphs of at most so many edges, those that are hidden stay as shadows
const REST = 160; // milliseconds after the last movement until the picture is at rest
const view = {
  camera: new Camera(),
  picker: null,
  painter: null,
  paint: null,
  drawn: 0,
  first: 0,
  budget: edges.count,
  restAt: 0,
  lastFrame: 0,
};

function marks() {
  const ink = [...parseColour(PALETTES[state.theme].ink), 255];
  return [...new Set([state.selected, state.hovered])]
    .filter((node) => node >= 0)
    .map((node) => ({
      node,
      rgba: [...view.paint.rgba.subarray(4 * node, 4 * node + 3), 255],
      shape: view.paint.shape[node],
      ring: ink,
    }));
}

function drawPicture(now) {
  view.waiting = false;
  const { camera } = view;
  const moving = performance.now() < view.restAt;
  if (moving) keepPace(now);
  else view.lastFrame = 0;
  const dark = state.theme === "dark";
  // Many short edges would cover the picture: from afar they are fainter.
  const crowd = Math.min(1, 0.25 + camera.scale / 26);
  const scene = {
    firstEdge: moving ? Math.max(view.first, edges.count - view.budget) : view.first,
    edgeColour: dark ? [150, 168, 186] : [62, 74, 88],
    edgeAlpha: (actions ? 0.85 : 0.4) * crowd,
    ghosts: edges.count <= GHOSTS ? 0.13 : 0,
    ground: dark ? [17, 22, 28] : [255, 255, 255],
    marks: marks(),
  };
  try {
    view.painter.draw(camera, scene, view.dpr);
    drawLabels(camera, view.dpr, moving);
  } catch (error) {
    if (view.painter.kind !== "WebGL") throw error;
    giveUpWebGL(error);
    return;
  }
  view.drawn += 1;
  view.moving = moving;
  if (moving) setTimeout(requestDraw, view.restAt - performance.now() + 1);
  if (view.drawn === 1) requestAnimationFrame(afterFirstPicture);
}

function requestDraw() {
  if (view.waiting || !view.painter) return;
  view.waiting = true;
  requestAnimationFrame(drawPicture);
}

function moveCamera(move) {
  view.touched = true;
  move();
  hover(-1);
  view.restAt = performance.now() + REST;
  requestDraw();
}

// A picture in motion shows as many of the strongest edges as can be drawn without stuttering; at
// rest it shows all of them again.
function keepPace(now) {
  const took = now - view.lastFrame;
  if (view.lastFrame && took > 45)
    view.budget = Math.max(1500, Math.min(view.budget, edges.count - view.first) / 2);
  else if (view.lastFrame && took < 22) view.budget = Math.min(view.budget * 1.3, edges.count);
  view.lastFrame = now;
}

function resize() {
  const canvas = byId("canvas");
  const box = byId("picture").getBoundingClientRect();
  view.dpr = Math.min(window.devicePixelRatio || 1, 2);
  const [width, height] = [Math.round(box.width * view.dpr), Math.round(box.height * view.dpr)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const atHome = Math.abs(view.camera.scale / view.camera.home - 1) < 1e-6;
  view.camera.resize(box.width, box.height);
  if (!view.touched) settle();
  else if (atHome) view.camera.fit();
  requestDraw();
}

function makePainter() {
  try {
    view.painter = new WebGLPainter(byId("canvas"));
  } catch (error) {
    if (error !== NO_WEBGL) console.error(error);
    view.painter = new CanvasPainter(byId("canvas"));
  }
  refreshNodes();
  refreshEdges();
  refreshGroups();
}

// A card that does not take our programs. A canvas of one kind cannot become another: it is replaced.
function giveUpWebGL(error) {
  console.error(error);
  const canvas = byId("canvas");
  const fresh = canvas.cloneNode();
  canvas.replaceWith(fresh);
  view.painter = new CanvasPainter(fresh);
  setUpPointer();
  refreshNodes();
  refreshEdges();
  refreshGroups();
  requestDraw();
}
