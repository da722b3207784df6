// What nodes show: colours that remain apart with any kind of colour vision (Okabe and Ito's), and
// a shape beside each colour.

const SHAPES = ["circle", "down", "up", "cross", "square", "diamond", "plus", "ring"];
const shapeCode = Object.fromEntries(SHAPES.map((name, code) => [name, code]));

const PALETTES = {
  light: {
    blue: "#0072B2",
    orange: "#E69F00",
    green: "#009E73",
    purple: "#CC79A7",
    vermilion: "#D55E00",
    sky: "#56B4E9",
    yellow: "#C9B900",
    ink: "#3a4450",
    none: "#b4bcc6",
  },
  dark: {
    blue: "#4AA8E0",
    orange: "#F0AE2B",
    green: "#14B88A",
    purple: "#DE93BC",
    vermilion: "#F0783A",
    sky: "#8CCBF2",
    yellow: "#F0E442",
    ink: "#c9d3dd",
    none: "#4c5864",
  },
};
const RAMPS = {
  light: {
    blue: ["#dfe7ee", "#8cc4e6", "#2f8ec4", "#005a94", "#00263f"],
    orange: ["#f1e8da", "#f0c46a", "#e08c10", "#b04c00", "#4f1d00"],
    green: ["#e0ebe6", "#86cdb6", "#2aa983", "#00704f", "#00301f"],
    both: ["#9a3c00", "#e58a4e", "#e6e6e4", "#5aa6d6", "#004f86"],
  },
  dark: {
    blue: ["#1e2a36", "#0b5a8c", "#2f94d0", "#86c9f3", "#eaf6ff"],
    orange: ["#2e2820", "#864a06", "#cc7f10", "#f2b84e", "#fff2d8"],
    green: ["#1b2c28", "#0b6a50", "#18a57d", "#74d8ba", "#e6fff6"],
    both: ["#ff9a5c", "#b0521c", "#2b333b", "#1f74ac", "#7cc6f7"],
  },
};
const CLASS_COLOURS = ["blue", "orange", "green", "purple", "vermilion", "sky", "yellow", "ink"];
const CLASS_SHAPES = ["circle", "up", "square", "diamond", "down", "plus", "cross", "ring"];
const ACTION_LOOKS = {
  standard: ["green", "circle", "listens and broadcasts"],
  listen: ["blue", "down", "listens only"],
  propagate: ["orange", "up", "broadcasts only"],
  isolate: ["purple", "cross", "does neither"],
};

function parseColour(text) {
  const value = parseInt(text.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function rampTable(stops) {
  const colours = stops.map(parseColour);
  const table = new Uint8Array(256 * 3);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (colours.length - 1);
    const k = Math.min(Math.floor(at), colours.length - 2);
    for (let c = 0; c < 3; c++) {
      table[3 * i + c] = Math.round(colours[k][c] + (at - k) * (colours[k + 1][c] - colours[k][c]));
    }
  }
  return table;
}

function classLook(k) {
  const turn = Math.floor(k / CLASS_COLOURS.length);
  return [CLASS_COLOURS[k % 8], CLASS_SHAPES[(k + turn) % 8]];
}

// The ways to colour: `categories` have a name, colour and shape each; `scale`s have a ramp.
function colourModes(target) {
  const modes = [];
  const classes = target.kind === "classes";
  if (actions) {
    modes.push({
      key: "action",
      label: "action",
      layered: true,
      categories: actions.names.map((name) => [name, ...ACTION_LOOKS[name]]),
      of: (layer) => actions.layers[layer].action,
    });
  }
  if (classes) {
    const looks = target.classes.map((name, k) => [name, ...classLook(k), ""]);
    modes.push(
      { key: "class", label: "true class", categories: looks, of: () => target.truth, missing: "unknown" },
      { key: "prediction", label: "predicted class", categories: looks, of: () => target.predicted },
      {
        key: "correct",
        label: "right or wrong",
        missing: "class unknown",
        categories: [
          ["right", "blue", "circle", ""],
          ["wrong", "vermilion", "cross", ""],
        ],
        of: () => target.truth.map((truth, i) => (truth < 0 ? -1 : Number(truth !== target.predicted[i]))),
      },
      {
        key: "probability",
        label: "certainty",
        ramp: "green",
        of: () => target.probability,
        low: 0,
        high: 1,
        caption: "probability of the predicted class",
      },
    );
  } else {
    modes.push(
      { key: "class", label: "true value", ramp: "green", of: () => target.truth, shared: target.predicted },
      {
        key: "prediction",
        label: "predicted value",
        ramp: "green",
        of: () => target.predicted,
        shared: target.truth,
      },
      {
        key: "error",
        label: "error",
        ramp: "both",
        symmetric: true,
        caption: "predicted minus true value",
        of: () => target.predicted.map((value, i) => value - target.truth[i]),
      },
    );
  }
  if (actions) {
    for (const [key, ramp] of [
      ["listening", "blue"],
      ["broadcasting", "orange"],
    ]) {
      modes.push({
        key,
        label: `${key} strength`,
        ramp,
        layered: true,
        low: 0,
        of: (layer) => actions.layers[layer][key],
        every: actions.layers.map((layer) => layer[key]),
      });
    }
  }
  modes.push({
    key: "part",
    label: "part of the split",
    of: () => nodes.part,
    categories: [
      ["in no part", "none", "ring", ""],
      ["train", "blue", "circle", ""],
      ["val", "orange", "up", ""],
      ["test", "green", "square", ""],
    ],
  });
  content.explanations.forEach((why, k) => {
    modes.push({
      key: `why-${k}`,
      label: `why ${[...nodeTitle(why.node)].slice(0, 24).join("")}`,
      ramp: "both",
      symmetric: true,
      caption: "attribution, on a scale of square roots",
      of: () => why.attribution,
      root: true,
    });
  });
  return modes;
}

// The value below which a share of the numbers lies; what is not a number does not count.
function quantile(arrays, share) {
  const values = Float64Array.from(
    arrays.flatMap((array) => Array.from(array).filter(Number.isFinite)),
  ).sort();
  return values.length ? values[Math.min(values.length - 1, Math.floor(share * values.length))] : 0;
}

function scaleOf(mode, values) {
  if (mode.range) return mode.range;
  const arrays = mode.every || [values, ...(mode.shared ? [mode.shared] : [])];
  if (mode.symmetric) {
    const most = quantile([values.map(Math.abs)], mode.root ? 1 : 0.98) || 1;
    mode.range = [-most, most];
  } else {
    const low = mode.low ?? quantile(arrays, 0.02);
    const high = mode.high ?? quantile(arrays, 0.98);
    mode.range = high > low ? [low, high] : [low, low + 1];
  }
  return mode.range;
}

// Colour and shape of every node.
function paintNodes(mode, layer, theme) {
  const palette = PALETTES[theme];
  const rgba = new Uint8Array(4 * nodes.count).fill(255);
  const shape = new Uint8Array(nodes.count);
  const values = mode.of(layer);
  const none = parseColour(palette.none);
  if (mode.categories) {
    const colours = mode.categories.map(([, colour]) => parseColour(palette[colour]));
    const shapes = mode.categories.map(([, , name]) => shapeCode[name]);
    for (let i = 0; i < nodes.count; i++) {
      const k = values[i];
      const tint = k >= 0 && k < colours.length ? colours[k] : none;
      for (let c = 0; c < 3; c++) rgba[4 * i + c] = tint[c];
      shape[i] = k >= 0 && k < shapes.length ? shapes[k] : shapeCode.ring;
    }
  } else {
    const table = rampTable(RAMPS[theme][mode.ramp]);
    const [low, high] = scaleOf(mode, values);
    for (let i = 0; i < nodes.count; i++) {
      if (Number.isFinite(values[i])) {
        const value = mode.root ? Math.sign(values[i]) * Math.sqrt(Math.abs(values[i]) * high) : values[i];
        const at = Math.round(255 * Math.min(1, Math.max(0, (value - low) / (high - low))));
        for (let c = 0; c < 3; c++) rgba[4 * i + c] = table[3 * at + c];
      } else {
        rgba.set(none, 4 * i);
        shape[i] = shapeCode.ring;
      }
    }
  }
  return { rgba, shape, values };
}

// A shape as a drawing of its own, for legends and tables.
const SHAPE_PATHS = {
  circle: "M8 2.6a5.4 5.4 0 1 0 .01 0z",
  down: "M1.8 3.5h12.4L8 14z",
  up: "M8 2l6.2 10.5H1.8z",
  cross: "M3.2 5.3l2.1-2.1L8 5.9l2.7-2.7 2.1 2.1L10.1 8l2.7 2.7-2.1 2.1L8 10.1l-2.7 2.7-2.1-2.1L5.9 8z",
  square: "M3 3h10v10H3z",
  diamond: "M8 1.5L14.5 8 8 14.5 1.5 8z",
  plus: "M6.3 2h3.4v4.3H14v3.4H9.7V14H6.3V9.7H2V6.3h4.3z",
  ring: "M8 2.5a5.5 5.5 0 1 0 .01 0zm0 3a2.5 2.5 0 1 1-.01 0z",
};

function glyph(shape, colour) {
  const path = draw("path", { d: SHAPE_PATHS[shape], "fill-rule": "evenodd" });
  path.style.fill = colour;
  return draw("svg", { viewBox: "0 0 16 16", class: "glyph", "aria-hidden": "true" }, path);
}

function actionGlyph(action, theme) {
  const [colour, shape] = ACTION_LOOKS[actions.names[action]];
  return glyph(shape, PALETTES[theme][colour]);
}
