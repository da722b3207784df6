// What is known about one node: briefly beside the pointer, at length in the panel.

const LISTED = 8;

function outcome(node) {
  const target = content.targets[state.target];
  if (target.kind === "numbers") {
    const truth = target.truth[node];
    return {
      truth: Number.isNaN(truth) ? "unknown" : number(truth),
      predicted: number(target.predicted[node]),
      verdict: Number.isNaN(truth) ? "" : `error ${number(target.predicted[node] - truth)}`,
      right: null,
    };
  }
  const truth = target.truth[node];
  const predicted = target.predicted[node];
  return {
    truth: truth < 0 ? "unknown" : target.classes[truth],
    predicted: target.classes[predicted],
    probability: target.probability[node],
    verdict: truth < 0 ? "" : truth === predicted ? "✓ right" : "✗ wrong",
    right: truth < 0 ? null : truth === predicted,
  };
}

function outcomeText(node) {
  const { predicted, probability } = outcome(node);
  return probability === undefined ? predicted : `${predicted} (${number(probability)})`;
}

function pairs(rows) {
  return make(
    "dl",
    {},
    rows.flatMap(([name, value, kind]) => [
      make("dt", {}, name),
      make("dd", { class: kind }, typeof value === "string" ? label(value, 40) : value),
    ]),
  );
}

function basics(node) {
  const { truth, verdict, right } = outcome(node);
  const part = nodes.parts[nodes.part[node]];
  const target = content.targets[state.target];
  const what =
    target.kind === "classes" ? (content.targets.length > 1 ? target.name : "class") : "true value";
  const rows = [
    [what, truth],
    ["predicted", outcomeText(node)],
  ];
  if (verdict) rows.push(["", verdict, right === null ? null : right ? "right" : "wrong"]);
  rows.push(
    ["part", part],
    ["degree", `${whole(nodes.in_degree[node])} in, ${whole(nodes.out_degree[node])} out`],
  );
  return rows;
}

function actionWord(layer, node) {
  const action = actions.layers[layer].action[node];
  return make("span", { class: "action" }, actionGlyph(action, state.theme), actions.names[action]);
}

// The words depend on what the numbers are: scales of maps, or shares of draws.
function scaleNames() {
  return actions.family === "csnn" ? ["s", "t"] : ["broadcasts", "listens"];
}

function tipContent(node) {
  const head = make("strong", {}, label(nodeTitle(node), 36));
  const rows = [...(nodes.names ? [["number", String(nodes.id[node])]] : []), ...basics(node)];
  const parts = [head, pairs(rows)];
  if (actions) {
    const layer = actions.layers[state.layer];
    const [source, target] = scaleNames();
    parts.push(
      pairs([
        [source, number(layer.source_scale[node])],
        [target, number(layer.target_scale[node])],
        ["broadcasting", number(layer.broadcasting[node])],
        ["listening", number(layer.listening[node])],
      ]),
      make(
        "ol",
        { class: "layers" },
        actions.layers.map((_, k) =>
          make("li", { class: k === state.layer ? "now" : null }, actionWord(k, node)),
        ),
      ),
    );
  }
  return parts;
}

function layerTable(node) {
  const [source, target] = scaleNames();
  const head = make(
    "tr",
    {},
    ["layer", "action", source, target, "broadcasting", "listening"].map((name, k) =>
      make("th", { scope: "col", class: k > 1 ? "numeric" : null }, name),
    ),
  );
  const rows = actions.layers.map((layer, k) =>
    make(
      "tr",
      { class: k === state.layer ? "now" : null },
      make(
        "th",
        { scope: "row" },
        layerButton(k),
      ),
      make("td", {}, actionWord(k, node)),
      ["source_scale", "target_scale", "broadcasting", "listening"].map((name) =>
        make("td", { class: "numeric", title: String(layer[name][node]) }, number(layer[name][node], 3)),
      ),
    ),
  );
  return make(
    "div",
    { class: "wide" },
    make("table", { class: "by-layer" }, make("thead", {}, head), make("tbody", {}, rows)),
  );
}

// The strongest edges on one side of a node; all alike if nothing says how strong they are.
function strongest(groups, node) {
  const list = Array.from(edgesAt(groups, node));
  if (actions) {
    const codes = actions.layers[state.layer].flow.codes;
    list.sort((a, b) => codes[b] - codes[a] || a - b);
  }
  return list;
}

function flowList(title, kind, groups, others, node) {
  const list = strongest(groups, node);
  const most = actions && list.length ? flowOf(state.layer, list[0]) : 0;
  const items = list.slice(0, LISTED).map((edge) => {
    const other = others[edge];
    const name = other === node ? "itself" : nodeLabel(other);
    const button = make(
      "button",
      { type: "button", class: "link", onclick: () => choose(other) },
      label(name, 18),
    );
    if (!actions) return make("li", {}, button);
    const flow = flowOf(state.layer, edge);
    const bar = make("span", { class: "bar-cell" });
    bar.style.setProperty("--share", most > 0 ? (flow / most).toFixed(3) : "0");
    const turn = actions.layers[state.layer].turn;
    const hint = turn ? `turned by ${percent(turn[edge] / 255)} of the most possible` : null;
    return make("li", { title: hint }, button, bar, make("span", { class: "numeric" }, number(flow)));
  });
  const more =
    list.length > LISTED ? make("li", { class: "more" }, `and ${whole(list.length - LISTED)} more`) : null;
  return make(
    "div",
    { class: `flows ${kind}` },
    make("h4", {}, title),
    list.length ? make("ul", {}, items, more) : make("p", { class: "quiet" }, "none drawn"),
  );
}

function nodeCard(node) {
  const title = make("h3", {}, label(nodeTitle(node), 44));
  const rows = [...(nodes.names ? [["number", String(nodes.id[node])]] : []), ...basics(node)];
  const words = actions ? ["Inflows", "Outflows"] : ["Edges in", "Edges out"];
  const suffix = actions ? `, layer ${state.layer + 1}` : "";
  const why = content.explanations.findIndex((each) => each.node === node);
  return [
    make(
      "div",
      { class: "card-head" },
      title,
      make("button", { type: "button", class: "small", onclick: () => choose(-1) }, "Clear"),
    ),
    pairs(rows),
    why >= 0
      ? make("button", { type: "button", class: "small", onclick: () => explainNode(why) }, "Show why")
      : null,
    why >= 0 ? columnTables(content.explanations[why]) : null,
    actions ? layerTable(node) : null,
    make(
      "div",
      { class: "both-flows" },
      flowList(words[0] + suffix, "in", edgesInto(), edges.source, node),
      flowList(words[1] + suffix, "out", edgesOutOf(), edges.target, node),
    ),
  ];
}
