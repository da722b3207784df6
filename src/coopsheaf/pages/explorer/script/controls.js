// Pointer, touch, keys and the controls above the picture.

const STEP = 60; // pixels per arrow key
const CLOSER = 1.35;

function setUpControls() {
  const layer = byId("layer");
  byId("layer-control").hidden = layerCount < 1;
  byId("share-control").hidden = layerCount < 1;
  layer.max = String(Math.max(layerCount, 1));
  layer.addEventListener("input", () => change({ layer: Number(layer.value) - 1 }));
  byId("share").addEventListener("input", () => change({ share: Number(byId("share").value) }));
  byId("colour").addEventListener("change", () => change({ mode: byId("colour").value }));
  const target = byId("target");
  byId("target-control").hidden = content.targets.length < 2;
  replace(
    target,
    content.targets.map((each, k) => make("option", { value: k }, [...each.name].slice(0, 40).join(""))),
  );
  target.addEventListener("change", () => change({ target: Number(target.value) }));
  byId("theme").addEventListener("click", () =>
    change({ theme: state.theme === "dark" ? "light" : "dark", themeChosen: true }),
  );
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener(
    "change",
    () => state.themeChosen || change({ theme: dark.matches ? "dark" : "light" }),
  );
  byId("closer").addEventListener("click", () => moveCamera(() => view.camera.zoom(CLOSER)));
  byId("farther").addEventListener("click", () => moveCamera(() => view.camera.zoom(1 / CLOSER)));
  byId("fit").addEventListener("click", () => moveCamera(() => view.camera.fit()));
  byId("help").addEventListener("click", openHelp);
  document.addEventListener("keydown", onKey);
  setUpPointer();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help-dialog").open) return;
  const at = document.activeElement;
  const free = !at || at === document.body || at === byId("canvas");
  const typing = at && at.tagName === "INPUT" && at.type === "search";
  const { camera } = view;
  const moves = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
  if (typing) return;
  if (free && moves[event.key]) moveCamera(() => camera.move(...moves[event.key]));
  else if (at === byId("canvas") && event.key === "Enter") chooseMiddle();
  else if (event.key === "+" || event.key === "=") moveCamera(() => camera.zoom(CLOSER));
  else if (event.key === "-" || event.key === "_") moveCamera(() => camera.zoom(1 / CLOSER));
  else if (event.key === "0") moveCamera(() => camera.fit());
  else if (event.key === "/") byId("search").focus();
  else if (event.key === "Escape") choose(-1);
  else if (event.key === "?") openHelp();
  else if ((event.key === "[" || event.key === "]") && layerCount) {
    const next = state.layer + (event.key === "]" ? 1 : -1);
    change({ layer: Math.min(Math.max(next, 0), layerCount - 1) });
  } else return;
  event.preventDefault();
}

function chooseMiddle() {
  const node = view.picker.nearest(view.camera.x, view.camera.y, view.camera.width / view.camera.scale);
  if (node >= 0) choose(node);
}

function setUpPointer() {
  const canvas = byId("canvas");
  const down = new Map();
  let travelled = 0;

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const nodeAt = ([px, py], slack) => {
    const [x, y] = view.camera.toWorld(px, py);
    return view.picker.nearest(x, y, (view.camera.radius + slack) / view.camera.scale);
  };
  const spread = () => {
    const [a, b] = [...down.values()];
    return { far: Math.hypot(a[0] - b[0], a[1] - b[1]), middle: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2] };
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, place(event));
    if (down.size === 1) travelled = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = place(event);
    if (!down.has(event.pointerId)) {
      hover(nodeAt(now, 6), now);
      return;
    }
    const before = down.get(event.pointerId);
    if (down.size === 2) {
      const was = spread();
      down.set(event.pointerId, now);
      const is = spread();
      moveCamera(() => {
        view.camera.move(is.middle[0] - was.middle[0], is.middle[1] - was.middle[1]);
        view.camera.zoom(is.far / Math.max(was.far, 1), ...is.middle);
      });
      travelled = 100;
      return;
    }
    down.set(event.pointerId, now);
    travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (travelled > 4) {
      hover(-1);
      canvas.classList.add("moving");
      moveCamera(() => view.camera.move(now[0] - before[0], now[1] - before[1]));
    }
  });
  const up = (event) => {
    const was = down.delete(event.pointerId);
    canvas.classList.remove("moving");
    if (was && event.type === "pointerup" && down.size === 0 && travelled <= 4) {
      const finger = event.pointerType === "touch";
      const node = nodeAt(place(event), finger ? 16 : 6);
      choose(node, { reveal: true });
      if (finger) hover(node, place(event)); // the numbers are below the picture on a phone
    }
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", (event) => event.pointerType === "touch" || hover(-1));
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1);
      const factor = Math.exp(-Math.min(Math.max(pixels, -240), 240) * (event.ctrlKey ? 0.01 : 0.0022));
      hover(-1);
      moveCamera(() => view.camera.zoom(factor, ...place(event)));
    },
    { passive: false },
  );
}

function hover(node, at) {
  const tip = byId("tip");
  if (node !== state.hovered) {
    state.hovered = node;
    byId("canvas").classList.toggle("over", node >= 0);
    if (node >= 0) replace(tip, tipContent(node));
    requestDraw();
  }
  tip.hidden = node < 0;
  if (node < 0 || !at) return;
  const [x, y] = view.camera.toScreen(nodes.x[node], nodes.y[node]);
  const gap = view.camera.radius + 10;
  const left = x + gap + tip.offsetWidth > view.camera.width ? x - gap - tip.offsetWidth : x + gap;
  const top = Math.min(Math.max(y - tip.offsetHeight / 3, 4), view.camera.height - tip.offsetHeight - 4);
  tip.style.left = `${Math.max(left, 4)}px`;
  tip.style.top = `${Math.max(top, 4)}px`;
}

const READING = [
  "Every node of a cooperative network decides in every layer how strongly it broadcasts and how " +
    "strongly it listens. If both are strong it acts as usual (standard); it may also only listen, only " +
    "broadcast (propagate), or do neither (isolate).",
  "An arrow is an edge along which information flows, the thicker the more. An edge and its reverse keep " +
    "to their own sides. The slider above hides the weaker ones, and those that carry nothing always; in " +
    "small graphs their shadows stay. Loops are not drawn.",
  "Select a node to see what it receives (blue) and what it sends (orange) in the chosen layer.",
];

function openHelp() {
  const dialog = byId("help-dialog");
  const keys = [
    ["/", "find a node"],
    ["arrow keys", "move the picture"],
    ["+  −  0", "zoom in, out, show everything"],
    ["[  ]", "layer before, layer after"],
    ["Enter", "on the picture: select the node in the middle"],
    ["Esc", "clear the selection"],
    ["?", "this help"],
  ];
  replace(
    dialog,
    make("h2", { id: "help-title" }, "How to read and move"),
    (actions ? READING : [content.silence]).map((text) => make("p", {}, text)),
    make(
      "dl",
      { class: "keys" },
      keys.flatMap(([key, what]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)]),
    ),
    make("p", { class: "quiet" }, `Drawn with ${view.painter.kind}. This file loads nothing from anywhere.`),
    make("button", { type: "button", onclick: () => dialog.close() }, "Close"),
  );
  dialog.showModal();
}
