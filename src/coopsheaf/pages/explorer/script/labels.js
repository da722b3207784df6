// Names beside nodes, on a canvas of their own above the picture. The chosen node always has its
// name; others have theirs while there are few enough of them in sight, and where there is room.

const MOST_LABELS = 400; // nodes in sight; of more than that only those next to the chosen one
const LABEL_LETTERS = 18;
const LABEL_SIZE = 11.5; // pixels
const LEAST_RADIUS = 2; // of nodes, in pixels: smaller ones are not told apart

let labelled = [];

function labelText(node) {
  const letters = [...nodeLabel(node).replace(/\s+/g, " ")];
  return letters.length > LABEL_LETTERS ? `${letters.slice(0, LABEL_LETTERS - 1).join("")}…` : letters.join("");
}

// Whose names matter, most of all first: the chosen one, its neighbours, then whoever has many.
function labelOrder(camera) {
  const first = [state.selected, state.hovered].filter((node) => node >= 0);
  if (state.selected >= 0) {
    for (const edge of edgesAt(edgesInto(), state.selected)) first.push(edges.source[edge]);
    for (const edge of edgesAt(edgesOutOf(), state.selected)) first.push(edges.target[edge]);
  }
  const seen = [];
  for (let i = 0; i < nodes.count && seen.length <= MOST_LABELS; i++) {
    const [x, y] = camera.toScreen(nodes.x[i], nodes.y[i]);
    if (x >= 0 && y >= 0 && x <= camera.width && y <= camera.height) seen.push(i);
  }
  const degree = (node) => nodes.in_degree[node] + nodes.out_degree[node];
  const others = seen.length <= MOST_LABELS && camera.radius >= LEAST_RADIUS ? seen : [];
  others.sort((a, b) => degree(b) - degree(a) || a - b);
  return [...new Set([...first.slice(0, MOST_LABELS), ...others])];
}

function drawLabels(camera, dpr, moving) {
  const canvas = byId("labels");
  const [width, height] = [Math.round(camera.width * dpr), Math.round(camera.height * dpr)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d");
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  context.clearRect(0, 0, camera.width, camera.height);
  labelled = [];
  if (moving && nodes.count > MOST_LABELS) return;
  const dark = state.theme === "dark";
  context.textAlign = "center";
  context.textBaseline = "top";
  context.lineJoin = "round";
  context.lineWidth = 3;
  context.strokeStyle = dark ? "rgb(17 22 28 / 85%)" : "rgb(255 255 255 / 88%)";
  const boxes = [];
  for (const node of labelOrder(camera)) {
    const chosen = node === state.selected;
    const text = labelText(node);
    if (!text) continue;
    context.font = `${chosen ? 700 : 400} ${chosen ? LABEL_SIZE + 2 : LABEL_SIZE}px system-ui, sans-serif`;
    const [x, y] = camera.toScreen(nodes.x[node], nodes.y[node]);
    const half = context.measureText(text).width / 2 + 1;
    const top = y + (chosen ? Math.max(camera.radius * 1.5, 8) : camera.radius) + 2;
    const box = [x - half, top, x + half, top + LABEL_SIZE + (chosen ? 2 : 0)];
    if (box[2] < 0 || box[0] > camera.width || box[3] < 0 || box[1] > camera.height) continue;
    if (!chosen && boxes.some((other) => overlap(box, other))) continue;
    boxes.push(box);
    context.strokeText(text, x, top);
    context.fillStyle = dark ? (chosen ? "#ffffff" : "#c9d3dd") : chosen ? "#000000" : "#3a4450";
    context.fillText(text, x, top);
    labelled.push(node);
  }
}

function overlap(a, b) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}
