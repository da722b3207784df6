// The column of numbers beside the picture.

function section(title, id, { open = true } = {}, ...children) {
  return make(
    "details",
    { id, open, class: "section" },
    make("summary", {}, make("h2", {}, title)),
    ...children,
  );
}

function buildPanels() {
  replace(byId("panel"), [
    section("Node", "node-section", {}, make("div", { id: "card" })),
    content.explanations.length ? section("Why", "why-section", {}, explanationsPanel()) : null,
    content.importance ? section("Columns", "columns-section", {}, importancePanel()) : null,
    actions
      ? section("Actions by layer", "actions-section", {}, make("div", { id: "action-shares" }))
      : section("Actions", "actions-section", {}, make("p", { class: "quiet" }, content.silence)),
    actions ? section("Scales", "scales-section", {}, make("div", { id: "histograms" })) : null,
    actions ? section("Who does what", "groupings-section", {}, groupingsPanel()) : null,
    section("Predictions", "predictions-section", {}, make("div", { id: "predictions" })),
    section("Training", "training-section", {}, trainingPanel()),
    section("Settings", "settings-section", { open: false }, settingsPanel()),
  ]);
  refreshCard();
  refreshActionPanels();
  refreshGroupings();
  refreshPredictions();
}

function groupingsPanel() {
  const select = make(
    "select",
    { id: "grouping", onchange: refreshGroupings },
    content.groupings.map(({ by, about }, k) => make("option", { value: k, title: about }, by)),
  );
  return [make("label", { class: "inline", for: "grouping" }, "By "), select, make("div", { id: "groups" })];
}

// The shares of the actions in every group of nodes, in the chosen layer.
function refreshGroupings() {
  const box = byId("groups");
  if (!box) return;
  const grouping = content.groupings[Number(byId("grouping").value)];
  const head = make(
    "tr",
    {},
    [grouping.by, "nodes", `actions in layer ${state.layer + 1}`, "says", "hears"].map((name, k) =>
      make(
        "th",
        {
          scope: "col",
          class: k === 0 || k === 2 ? null : "numeric",
          title: { says: "mean broadcasting strength", hears: "mean listening strength" }[name],
        },
        name,
      ),
    ),
  );
  const rows = grouping.rows
    .filter((row) => row.layer === state.layer)
    .map((row) =>
      make(
        "tr",
        {},
        make("th", { scope: "row" }, label(row.group, 14)),
        make("td", { class: "numeric" }, whole(row.nodes)),
        make("td", { class: "fill" }, shareBar(row.counts, actions.names, state.theme)),
        make("td", { class: "numeric" }, number(row.broadcasting, 3)),
        make("td", { class: "numeric" }, number(row.listening, 3)),
      ),
    );
  replace(
    box,
    make(
      "div",
      { class: "wide" },
      make("table", { class: "groups" }, make("thead", {}, head), make("tbody", {}, rows)),
    ),
    make("p", { class: "quiet" }, `${grouping.about}; all nodes of the graph.`),
  );
}

function refreshCard() {
  const card = byId("card");
  if (!card) return;
  if (state.selected >= 0) replace(card, nodeCard(state.selected));
  else
    replace(
      card,
      make("p", { class: "quiet" }, "Point at a node, tap it, or find it by its number or name."),
    );
}

function refreshActionPanels() {
  const box = byId("action-shares");
  if (!box) return;
  replace(
    box,
    actions.counts.map((counts, k) =>
      make(
        "div",
        { class: `layer-row${k === state.layer ? " now" : ""}` },
        layerButton(k),
        shareBar(counts, actions.names, state.theme),
      ),
    ),
    make(
      "ul",
      { class: "key" },
      actions.names.map((name, k) =>
        make("li", {}, actionGlyph(k, state.theme), `${name}: ${ACTION_LOOKS[name][2]}`),
      ),
    ),
    make("p", { class: "quiet" }, `All ${whole(content.graph.nodes)} nodes. ${ruleText()}`),
  );
  const { high, beyond, layers } = actions.histograms;
  const most = Math.max(1, ...layers.flatMap((layer) => Object.values(layer).flat()));
  const csnn = actions.family === "csnn";
  const words = csnn
    ? ["source scale s: broadcasts", "target scale t: listens"]
    : ["share of draws: broadcasts", "share of draws: listens"];
  replace(
    byId("histograms"),
    make(
      "ul",
      { class: "key" },
      make("li", {}, make("span", { class: "swatch source" }), words[0]),
      make("li", {}, make("span", { class: "swatch target" }), words[1]),
    ),
    layers.map((counts, k) =>
      make(
        "figure",
        { class: k === state.layer ? "now" : null },
        make("figcaption", {}, `Layer ${k + 1}`),
        histogramChart(counts, high, most, `Scales of layer ${k + 1}`),
      ),
    ),
    make(
      "p",
      { class: "quiet" },
      "Heights are square roots of counts, so that rare scales are seen." +
        (beyond ? " The last bar holds all that is larger." : ""),
    ),
  );
}

function ruleText() {
  if (actions.most_frequent_of)
    return `Shown is the most frequent action of ${actions.most_frequent_of} draws.`;
  const least = `A node listens, or broadcasts, if its strength is at least ${number(actions.threshold)}`;
  return actions.family === "csnn" ? `${least}, in units of the root mean square of its layer.` : `${least}.`;
}

function refreshPredictions() {
  const box = byId("predictions");
  if (!box) return;
  const target = content.targets[state.target];
  if (target.kind === "numbers") {
    replace(box, scatterChart(target) || make("p", { class: "quiet" }, "No true value is known."));
    return;
  }
  const { classes, tables } = target.confusion;
  const parts = Object.keys(tables).filter((part) => tables[part].flat().some((count) => count > 0));
  if (!parts.length) {
    replace(box, make("p", { class: "quiet" }, "No true class is known."));
    return;
  }
  const first = parts.includes("test") ? "test" : parts[0];
  const place = make("div", {}, confusionTable(classes, tables[first]));
  const select = make(
    "select",
    { id: "confusion-part", onchange: () => replace(place, confusionTable(classes, tables[select.value])) },
    parts.map((part) =>
      make(
        "option",
        { value: part, selected: part === first },
        part === "all" ? "all known nodes" : `${part} nodes`,
      ),
    ),
  );
  replace(box, make("label", { class: "inline", for: "confusion-part" }, "Of the "), select, place);
}

function trainingPanel() {
  const training = content.training;
  const score = (value) => (value === null ? "–" : value.toFixed(4));
  const here = training.scores_here;
  const parts = Object.keys(training.scores);
  const differs = parts.some((part) => score(here[part]) !== score(training.scores[part]));
  const rows = parts.map((part) => [
    part,
    score(training.scores[part]),
    ...(differs ? [score(here[part])] : []),
  ]);
  const table = dataTable([training.metric, "at training", ...(differs ? ["on this graph"] : [])], rows);
  if (!training.history.length) {
    return [
      table,
      make("p", { class: "quiet" }, "The run holds no curve: it was not evaluated while it was trained."),
    ];
  }
  const key = make(
    "ul",
    { class: "key" },
    ["train", "val", "test"].map((name) => make("li", {}, make("span", { class: `line ${name}` }), name)),
    make("li", {}, make("span", { class: "line best" }), `best val, epoch ${training.best_epoch}`),
  );
  return [curveChart(training), key, table];
}

function settingsPanel() {
  return content.settings.map(({ title, rows }) => [make("h3", {}, title), pairs(rows)]).flat();
}

function explanationsPanel() {
  return content.explanations.map((why, k) =>
    make(
      "div",
      { class: "why" },
      make(
        "div",
        { class: "card-head" },
        make("h3", {}, label(nodeTitle(why.node), 36)),
        make("button", { type: "button", class: "small", onclick: () => explainNode(k) }, "Show"),
      ),
      make(
        "p",
        { class: "quiet" },
        `What moves ${why.score} (${number(why.value)}): by how much it would fall if a node had average features.`,
      ),
      whyTable(why),
      why.paths.length ? make("h4", {}, "Strongest paths to it") : null,
      make(
        "ol",
        { class: "paths" },
        why.paths
          .slice(0, 6)
          .map((path) =>
            make(
              "li",
              {},
              label(path.text, 42),
              make("span", { class: "numeric quiet" }, number(path.strength, 3)),
            ),
          ),
      ),
    ),
  );
}

function whyTable(why) {
  const columns = [
    "attribution",
    ...(why.rows.some((row) => row.diffusion !== null) ? ["diffusion", "learners"] : []),
  ];
  const head = make(
    "tr",
    {},
    ["node", "hops", ...columns].map((name, k) =>
      make("th", { scope: "col", class: k ? "numeric" : null }, name),
    ),
  );
  const rows = why.rows.map((row) =>
    make(
      "tr",
      {},
      make(
        "th",
        { scope: "row" },
        row.node < 0
          ? label(row.name, 14)
          : make(
              "button",
              { type: "button", class: "link", onclick: () => choose(row.node) },
              label(row.name, 14),
            ),
      ),
      make("td", { class: "numeric" }, row.hops < 0 ? "–" : String(row.hops)),
      columns.map((name) =>
        make("td", { class: `numeric ${row[name] < 0 ? "against" : "for"}` }, signed(row[name])),
      ),
    ),
  );
  return make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, rows)));
}

function layerButton(k) {
  return make(
    "button",
    {
      type: "button",
      class: "link",
      "aria-label": `Show layer ${k + 1}`,
      onclick: () => change({ layer: k }),
    },
    String(k + 1),
  );
}
