// Draws with WebGL 2. Edges lie in a buffer from weak to strong, so that a threshold is only the
// place where drawing begins, and strong ones come on top.
//
// Nothing is drawn as instances of one shape: software renderers take ten times as long for them.

const NO_WEBGL = new Error("there is no WebGL 2");
const EDGE_FLOATS = 5; // from x, y, to x, y, strength
const ARROW_FLOATS = 7; // those and the corner: along, across
const SMALLEST_SHAPE = 2.8; // pixels of radius below which nodes are dots
const NEAR = 12; // pixels per unit from which on arrows are drawn if there are many edges
const FEW_EDGES = 3000; // as arrows from any distance
const MOST_ARROWS = 12000;

class WebGLPainter {
  constructor(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: false, depth: false, alpha: true });
    if (!gl) throw NO_WEBGL;
    this.gl = gl;
    this.canvas = canvas;
    this.kind = "WebGL";
    this.arrows = this.link(ARROW_VERTEX, ARROW_FRAGMENT);
    this.lines = this.link(LINE_VERTEX, LINE_FRAGMENT);
    this.shapes = this.link(NODE_VERTEX, NODE_FRAGMENT);
    this.dots = this.link(NODE_VERTEX, DOT_FRAGMENT);
    this.places = this.buffer(interleave(nodes.x, nodes.y));
    this.tints = gl.createBuffer();
    this.forms = gl.createBuffer();
    this.lineBuffer = gl.createBuffer();
    this.arrowBuffer = gl.createBuffer();
    this.cornerBuffer = gl.createBuffer();
    this.corners = 0;
    this.edges = new Float32Array(0);
    this.groups = [];
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  link(vertex, fragment) {
    const gl = this.gl;
    const program = gl.createProgram();
    for (const [type, source] of [
      [gl.VERTEX_SHADER, vertex],
      [gl.FRAGMENT_SHADER, fragment],
    ]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    return { program, uniforms: null, places: null };
  }

  // Asking about a program waits until it is compiled, so that it is put off until it is used.
  inspect(entry) {
    const gl = this.gl;
    const { program } = entry;
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
      const logs = gl.getAttachedShaders(program).map((shader) => gl.getShaderInfoLog(shader));
      throw new Error(`a shader does not compile: ${logs.join(" ")} ${gl.getProgramInfoLog(program)}`);
    }
    entry.uniforms = {};
    for (let k = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS) - 1; k >= 0; k--) {
      const { name } = gl.getActiveUniform(program, k);
      entry.uniforms[name] = gl.getUniformLocation(program, name);
    }
    entry.places = {};
    for (let k = gl.getProgramParameter(program, gl.ACTIVE_ATTRIBUTES) - 1; k >= 0; k--) {
      const { name } = gl.getActiveAttrib(program, k);
      entry.places[name] = gl.getAttribLocation(program, name);
    }
  }

  buffer(array) {
    const buffer = this.gl.createBuffer();
    this.upload(buffer, array);
    return buffer;
  }

  upload(buffer, array) {
    const gl = this.gl;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, array, gl.DYNAMIC_DRAW);
  }

  setNodes(rgba, shape) {
    this.upload(this.tints, rgba);
    this.upload(this.forms, Float32Array.from(shape));
  }

  setEdges(array) {
    this.edges = array;
    this.upload(this.lineBuffer, lineVertices(array));
  }

  // Edges drawn over all others, each group in a colour of its own.
  setGroups(groups) {
    this.groups = groups;
  }

  draw(camera, scene, dpr) {
    const gl = this.gl;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const count = this.edges.length / EDGE_FLOATS;
    const focused = this.groups.length > 0;
    const look = {
      colour: scene.edgeColour,
      alpha: scene.edgeAlpha * (focused ? 0.3 : 1),
      faint: 0.16,
      wide: 1,
    };
    if (scene.ghosts)
      this.drawLines(camera, dpr, 0, scene.firstEdge, { ...look, alpha: scene.ghosts, faint: 1 });
    const near = camera.scale >= NEAR || count - scene.firstEdge <= FEW_EDGES;
    const seen = near ? edgesInSight(this.edges, scene.firstEdge, camera) : null;
    if (seen) this.drawArrows(camera, dpr, this.edges, seen, look);
    else this.drawLines(camera, dpr, scene.firstEdge, count, look);
    this.drawNodes(camera, dpr, scene);
    for (const { array, colour } of this.groups) {
      const all = Array.from({ length: array.length / EDGE_FLOATS }, (_, k) => k);
      const strong = { colour, alpha: 1, faint: 0.45, wide: Math.max(1, 2.2 / camera.stroke) };
      this.drawArrows(camera, dpr, array, all, strong);
    }
    this.drawMarks(camera, dpr, scene);
  }

  use(program, camera, dpr, numbers) {
    const gl = this.gl;
    if (!program.uniforms) this.inspect(program);
    gl.useProgram(program.program);
    const values = { scale: camera.scale * dpr, radius: camera.radius * dpr, dpr, ...numbers };
    for (const [name, value] of Object.entries(values)) {
      if (program.uniforms[name]) gl.uniform1f(program.uniforms[name], value);
    }
    gl.uniform2f(program.uniforms.view, this.canvas.width, this.canvas.height);
    gl.uniform2f(program.uniforms.middle, camera.x, camera.y);
  }

  attribute(
    program,
    name,
    buffer,
    size,
    { type = this.gl.FLOAT, stride = 0, offset = 0, unit = false } = {},
  ) {
    const location = program.places[name];
    if (location === undefined) return;
    const gl = this.gl;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, size, type, unit, stride, offset);
  }

  colour(program, [red, green, blue], alpha) {
    this.gl.uniform4f(program.uniforms.colour, red / 255, green / 255, blue / 255, alpha);
  }

  drawLines(camera, dpr, first, last, { colour, alpha, faint }) {
    if (last <= first) return;
    const gl = this.gl;
    const program = this.lines;
    this.use(program, camera, dpr, { faint });
    this.colour(program, colour, alpha);
    this.attribute(program, "place", this.lineBuffer, 2, { stride: 12 });
    this.attribute(program, "strength", this.lineBuffer, 1, { stride: 12, offset: 8 });
    gl.drawArrays(gl.LINES, 2 * first, 2 * (last - first));
  }

  drawArrows(camera, dpr, array, list, { colour, alpha, faint, wide }) {
    if (!list.length) return;
    const gl = this.gl;
    const program = this.arrows;
    this.use(program, camera, dpr, { faint, stroke: camera.stroke * wide * dpr });
    this.colour(program, colour, alpha);
    this.upload(this.arrowBuffer, arrowVertices(array, list));
    const stride = 4 * ARROW_FLOATS;
    this.attribute(program, "ends", this.arrowBuffer, 4, { stride });
    this.attribute(program, "strength", this.arrowBuffer, 1, { stride, offset: 16 });
    this.attribute(program, "corner", this.arrowBuffer, 2, { stride, offset: 20 });
    this.bindCorners(list.length);
    gl.drawElements(gl.TRIANGLES, 6 * list.length, gl.UNSIGNED_INT, 0);
  }

  // The two triangles of every arrow, by the numbers of its four corners.
  bindCorners(count) {
    const gl = this.gl;
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.cornerBuffer);
    if (this.corners >= count) return;
    this.corners = Math.max(count, 2 * this.corners);
    const list = new Uint32Array(6 * this.corners);
    for (let k = 0; k < list.length; k++) list[k] = 4 * Math.floor(k / 6) + [0, 1, 2, 1, 2, 3][k % 6];
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, list, gl.STATIC_DRAW);
  }

  drawNodes(camera, dpr, scene) {
    const radius = camera.radius * dpr;
    if (camera.radius < SMALLEST_SHAPE) {
      this.use(this.dots, camera, dpr, { size: 2 * radius + 1 });
      this.drawPoints(this.dots, this.places, this.tints, this.forms, nodes.count);
      return;
    }
    const rim = Math.min(1.2, 0.12 * camera.radius) * dpr;
    this.use(this.shapes, camera, dpr, { size: 2 * (1.3 * radius + 1.5), rim });
    this.gl.uniform3f(this.shapes.uniforms.ground, ...scene.ground.map((part) => part / 255));
    this.drawPoints(this.shapes, this.places, this.tints, this.forms, nodes.count);
  }

  drawPoints(program, places, tints, forms, count) {
    const gl = this.gl;
    this.attribute(program, "place", places, 2);
    this.attribute(program, "tint", tints, 4, { type: gl.UNSIGNED_BYTE, unit: true });
    this.attribute(program, "form", forms, 1);
    gl.drawArrays(gl.POINTS, 0, count);
  }

  // The nodes that are chosen or pointed at once more, and rings around them.
  drawMarks(camera, dpr, scene) {
    if (!scene.marks.length) return;
    const [places, tints, forms] = [[], [], []];
    for (const { node, rgba, shape, ring } of scene.marks) {
      places.push(nodes.x[node], nodes.y[node], nodes.x[node], nodes.y[node]);
      tints.push(...rgba, ...ring);
      forms.push(shape, MARK);
    }
    const radius = Math.max(camera.radius * 1.25, 5) * dpr;
    this.use(this.shapes, camera, dpr, { radius, size: 2 * (1.3 * radius + 1.5), rim: 1.2 * dpr });
    this.gl.uniform3f(this.shapes.uniforms.ground, ...scene.ground.map((part) => part / 255));
    this.marks ||= [this.gl.createBuffer(), this.gl.createBuffer(), this.gl.createBuffer()];
    this.upload(this.marks[0], new Float32Array(places));
    this.upload(this.marks[1], new Uint8Array(tints));
    this.upload(this.marks[2], new Float32Array(forms));
    this.drawPoints(this.shapes, ...this.marks, forms.length);
  }
}

function interleave(x, y) {
  const both = new Float32Array(2 * x.length);
  for (let i = 0; i < x.length; i++) {
    both[2 * i] = x[i];
    both[2 * i + 1] = y[i];
  }
  return both;
}

// Both ends of every edge, each direction a little to its side.
function lineVertices(array) {
  const count = array.length / EDGE_FLOATS;
  const vertices = new Float32Array(6 * count);
  for (let k = 0; k < count; k++) {
    const at = k * EDGE_FLOATS;
    const right = array[at + 2] - array[at];
    const down = array[at + 3] - array[at + 1];
    const lane = Math.min(0.11 / Math.max(Math.sqrt(right * right + down * down), 1e-9), 0.12);
    for (let end = 0; end < 2; end++) {
      const to = 6 * k + 3 * end;
      vertices[to] = array[at + 2 * end] - lane * down;
      vertices[to + 1] = array[at + 2 * end + 1] + lane * right;
      vertices[to + 2] = array[at + 4];
    }
  }
  return vertices;
}

// The four corners of every arrow; the graphics card puts them in their places.
function arrowVertices(array, list) {
  const vertices = new Float32Array(4 * ARROW_FLOATS * list.length);
  let at = 0;
  for (const edge of list) {
    const from = edge * EDGE_FLOATS;
    for (let corner = 0; corner < 4; corner++) {
      for (let k = 0; k < EDGE_FLOATS; k++) vertices[at++] = array[from + k];
      vertices[at++] = corner >> 1;
      vertices[at++] = corner & 1 ? 1 : -1;
    }
  }
  return vertices;
}

// The edges that may cross the picture, from weak to strong; null if they are too many for arrows.
function edgesInSight(array, first, camera) {
  const [left, top] = camera.toWorld(-20, -20);
  const [right, bottom] = camera.toWorld(camera.width + 20, camera.height + 20);
  const list = [];
  for (let k = first, at = first * EDGE_FLOATS; at < array.length; k++, at += EDGE_FLOATS) {
    const px = array[at];
    const py = array[at + 1];
    const qx = array[at + 2];
    const qy = array[at + 3];
    if ((px < left && qx < left) || (px > right && qx > right)) continue;
    if ((py < top && qy < top) || (py > bottom && qy > bottom)) continue;
    list.push(k);
    if (list.length > MOST_ARROWS) return null;
  }
  return list;
}
