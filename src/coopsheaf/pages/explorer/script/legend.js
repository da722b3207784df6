// What colours, shapes and arrows mean, in a corner of the picture.

function refreshLegend() {
  const mode = currentMode();
  const palette = PALETTES[state.theme];
  byId("layer-value").textContent = layerCount ? `${state.layer + 1} of ${layerCount}` : "";
  const items = [];
  if (mode.categories) {
    const counts = new Map();
    for (const k of view.paint.values) counts.set(k, (counts.get(k) || 0) + 1);
    mode.categories.forEach(([name, colour, shape], k) => {
      if (counts.get(k) || mode.categories.length <= 8)
        items.push([glyph(shape, palette[colour]), name, counts.get(k) || 0]);
    });
    if (counts.get(-1)) items.push([glyph("ring", palette.none), mode.missing || "unknown", counts.get(-1)]);
    replace(
      byId("legend"),
      make(
        "ul",
        {},
        items.map(([mark, name, count]) =>
          make("li", {}, mark, label(name, 22), make("span", { class: "numeric" }, whole(count))),
        ),
      ),
      edgeKey(palette),
    );
  } else {
    const [low, high] = scaleOf(mode, view.paint.values);
    const strip = make("div", { class: "strip" });
    strip.style.background = `linear-gradient(to right, ${RAMPS[state.theme][mode.ramp].join(", ")})`;
    replace(
      byId("legend"),
      make("div", { class: "caption" }, mode.caption || mode.label),
      strip,
      make("div", { class: "range" }, make("span", {}, number(low)), make("span", {}, number(high))),
      edgeKey(palette),
    );
  }
}

function edgeKey(palette) {
  const line = (colour, text) => {
    const mark = make("span", { class: "arrow", "aria-hidden": "true" }, "→");
    mark.style.color = colour;
    return make("li", {}, mark, text);
  };
  if (state.why >= 0) return make("ul", { class: "edge-key" }, line(palette.purple, "strongest paths"));
  if (state.selected < 0) return null;
  return make(
    "ul",
    { class: "edge-key" },
    line(palette.blue, actions ? "inflow" : "edges in"),
    line(palette.orange, actions ? "outflow" : "edges out"),
  );
}
