// Draws on a plain canvas where there is no WebGL: the same scene, with at most so many edges.

const MOST_EDGES = 8000;

class CanvasPainter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.kind = "canvas";
    this.edges = new Float32Array(0);
    this.groups = [];
  }

  setNodes(rgba, shape) {
    this.rgba = rgba;
    this.shape = shape;
  }

  setEdges(array) {
    this.edges = array;
  }

  setGroups(groups) {
    this.groups = groups;
  }

  draw(camera, scene, dpr) {
    const context = this.context;
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    context.clearRect(0, 0, camera.width, camera.height);
    const count = this.edges.length / EDGE_FLOATS;
    const first = Math.max(scene.firstEdge, count - MOST_EDGES);
    const alpha = scene.edgeAlpha * (this.groups.length ? 0.3 : 1);
    if (scene.ghosts) {
      this.drawEdges(
        camera,
        this.edges.subarray(0, scene.firstEdge * EDGE_FLOATS),
        0,
        scene.edgeColour,
        scene.ghosts,
        0.7,
      );
    }
    this.drawEdges(camera, this.edges, first, scene.edgeColour, alpha, 1);
    this.drawNodes(camera);
    const wide = Math.max(1, 2.2 / camera.stroke);
    for (const { array, colour } of this.groups) this.drawEdges(camera, array, 0, colour, 1, wide);
    for (const { node, rgba, shape, ring } of scene.marks) {
      const [x, y] = camera.toScreen(nodes.x[node], nodes.y[node]);
      const radius = Math.max(camera.radius * 1.25, 5);
      this.drawShape(SHAPES[shape], x, y, radius, cssColour(rgba));
      context.strokeStyle = cssColour(ring);
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x, y, radius * 1.2, 0, 2 * Math.PI);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  // Edges of like strength in one stroke: a stroke costs more than a line in it.
  drawEdges(camera, array, first, colour, alpha, wide) {
    const context = this.context;
    const count = array.length / EDGE_FLOATS;
    context.strokeStyle = cssColour(colour);
    context.fillStyle = cssColour(colour);
    const steps = 6;
    for (let step = 0, e = first; step < steps; step++) {
      context.beginPath();
      const heads = new Path2D();
      // They come from weak to strong; the last step takes what is left.
      for (; e < count && (step === steps - 1 || array[e * EDGE_FLOATS + 4] * steps < step + 1); e++) {
        this.addEdge(camera, array, e * EDGE_FLOATS, heads);
      }
      const strength = (step + 0.5) / steps;
      context.globalAlpha = alpha * (0.2 + 0.8 * strength);
      context.lineWidth = Math.max(0.4, camera.stroke * wide * (0.4 + 0.6 * strength));
      context.stroke();
      context.fill(heads);
    }
    context.globalAlpha = 1;
  }

  addEdge(camera, array, at, heads) {
    const [px, py] = camera.toScreen(array[at], array[at + 1]);
    const [qx, qy] = camera.toScreen(array[at + 2], array[at + 3]);
    if (Math.max(px, qx) < 0 || Math.min(px, qx) > camera.width) return;
    if (Math.max(py, qy) < 0 || Math.min(py, qy) > camera.height) return;
    const far = Math.hypot(qx - px, qy - py);
    if (far < 0.5) return;
    const [dx, dy] = [(qx - px) / far, (qy - py) / far];
    const lane = Math.min(0.36 * camera.radius, 0.12 * far);
    const trim = Math.min(camera.radius, 0.36 * far) * 0.92;
    const [sx, sy] = [px + dx * trim - dy * lane, py + dy * trim + dx * lane];
    const [tx, ty] = [qx - dx * trim - dy * lane, qy - dy * trim + dx * lane];
    this.context.moveTo(sx, sy);
    this.context.lineTo(tx, ty);
    const head = Math.min(0.3 * far, 7);
    if (far < 14) return;
    heads.moveTo(tx, ty);
    heads.lineTo(tx - dx * head - dy * head * 0.45, ty - dy * head + dx * head * 0.45);
    heads.lineTo(tx - dx * head + dy * head * 0.45, ty - dy * head - dx * head * 0.45);
    heads.closePath();
  }

  drawNodes(camera) {
    const radius = camera.radius;
    for (let i = 0; i < nodes.count; i++) {
      const [x, y] = camera.toScreen(nodes.x[i], nodes.y[i]);
      if (x < -radius || y < -radius || x > camera.width + radius || y > camera.height + radius) continue;
      this.context.globalAlpha = this.rgba[4 * i + 3] / 255;
      this.drawShape(SHAPES[this.shape[i]], x, y, radius, cssColour(this.rgba.subarray(4 * i, 4 * i + 3)));
    }
    this.context.globalAlpha = 1;
  }

  drawShape(shape, x, y, radius, colour) {
    const context = this.context;
    context.fillStyle = colour;
    if (radius < SMALLEST_SHAPE) {
      context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
      return;
    }
    this.paths ||= Object.fromEntries(SHAPES.map((name) => [name, new Path2D(SHAPE_PATHS[name])]));
    context.save();
    context.translate(x, y);
    context.scale(radius / 6, radius / 6);
    context.translate(-8, -8);
    context.fill(this.paths[shape], "evenodd");
    context.restore();
  }
}

function cssColour([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}
