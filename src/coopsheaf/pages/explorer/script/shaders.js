// The programs of the graphics card. Four corners are one arrow; a point is one node. Smooth outlines,
// arrowheads and shapes are computed per pixel; from afar, where they would not be seen, edges are
// thin lines that fade towards their targets, and nodes are dots.

const MARK = 8; // the shape around a chosen node

const ARROW_VERTEX = `#version 300 es
precision highp float;
in vec2 corner;    // along the edge from 0 to 1, across it from -1 to 1
in vec4 ends;      // from x, y to x, y
in float strength; // 0 to 1
uniform vec2 view, middle;
uniform float scale, radius, stroke, dpr;
out vec2 at;       // pixels along, pixels across
out vec3 size;     // length, half width, strength
void main() {
  vec2 p = (ends.xy - middle) * scale, q = (ends.zw - middle) * scale;
  vec2 way = q - p;
  float far = length(way);
  if (far < 0.5) { gl_Position = vec4(2.0, 2.0, 2.0, 1.0); return; }  // loops, and what is too short to see
  way /= far;
  vec2 side = vec2(-way.y, way.x);
  float half_width = stroke * mix(0.22, 0.5, strength);
  // Each direction keeps to its side, so that an edge and its reverse are both seen.
  float lane = min(0.36 * radius, 0.12 * far);
  float trim = min(radius, 0.36 * far) * 0.92;
  float span = far - 2.0 * trim;
  float room = (span > 9.0 * dpr ? 2.4 * half_width + 0.6 * dpr : 1.5 * half_width) + 0.75;
  vec2 start = p + way * trim + side * lane;
  at = vec2(corner.x * (span + 2.0) - 1.0, corner.y * room);
  size = vec3(span, half_width, strength);
  vec2 place = start + way * at.x + side * at.y;
  gl_Position = vec4(place / view * vec2(2.0, -2.0), 0.0, 1.0);
}`;

const ARROW_FRAGMENT = `#version 300 es
precision highp float;
in vec2 at;
in vec3 size;
uniform vec4 colour;
uniform float faint, dpr;
out vec4 result;
void main() {
  float left = size.x - at.x;
  float head = min(0.45 * size.x, 5.0 * size.y + 3.0 * dpr);
  float half_width;
  if (size.x > 9.0 * dpr) {
    float tail = size.y * mix(1.0, 0.7, at.x / size.x);
    half_width = left < head ? (size.y * 2.4 + 0.6 * dpr) * left / head : tail;
  } else {
    half_width = 1.5 * size.y * (1.0 - at.x / size.x);  // too short for a head: it tapers
  }
  float cover = clamp(half_width + 0.5 - abs(at.y), 0.0, min(1.0, 2.0 * half_width));
  cover *= clamp(at.x + 0.5, 0.0, 1.0) * clamp(left + 0.5, 0.0, 1.0);
  float alpha = colour.a * cover * mix(faint, 1.0, size.z);
  if (alpha < 0.004) discard;
  result = vec4(colour.rgb * alpha, alpha);
}`;

const LINE_VERTEX = `#version 300 es
precision highp float;
in vec2 place;
in float strength;
uniform vec2 view, middle;
uniform float scale, faint;
uniform vec4 colour;
out float alpha;
void main() {
  gl_Position = vec4((place - middle) * scale / view * vec2(2.0, -2.0), 0.0, 1.0);
  float end = float(gl_VertexID & 1);
  alpha = colour.a * mix(faint, 0.8, strength) * mix(1.0, 0.4, end);
}`;

const LINE_FRAGMENT = `#version 300 es
precision highp float;
in float alpha;
uniform vec4 colour;
out vec4 result;
void main() { result = vec4(colour.rgb * alpha, alpha); }`;

const DOT_FRAGMENT = `#version 300 es
precision highp float;
in vec4 paint;
uniform float radius;
out vec4 result;
void main() {
  float d = length(gl_PointCoord - 0.5) * 2.0 * (radius + 0.5) - radius;
  float alpha = clamp(0.5 - d, 0.0, 1.0) * paint.a;
  result = vec4(paint.rgb * alpha, alpha);
}`;

const NODE_VERTEX = `#version 300 es
precision highp float;
in vec2 place;
in vec4 tint;
in float form;
uniform vec2 view, middle;
uniform float scale, radius, size;
out vec4 paint;
flat out float kind;
void main() {
  vec2 p = (place - middle) * scale;
  gl_Position = vec4(p / view * vec2(2.0, -2.0), 0.0, 1.0);
  gl_PointSize = size;
  paint = tint;
  kind = form;
}`;

const NODE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 paint;
flat in float kind;
uniform float radius, rim;
uniform vec3 ground;
out vec4 result;
float box(vec2 p, vec2 b) { vec2 d = abs(p) - b; return max(d.x, d.y); }
float wedge(vec2 p) {  // a triangle that points down
  p.y += 0.25;
  return max(abs(p.x) * 0.866 + p.y * 0.5, -p.y) - 0.6;
}
float outline(vec2 p) {  // below 0 inside; the radius is 1
  if (kind < 0.5) return length(p) - 0.92;
  if (kind < 1.5) return wedge(p);
  if (kind < 2.5) return wedge(vec2(p.x, -p.y));
  if (kind < 3.5) {
    p = vec2(p.x + p.y, p.x - p.y) * 0.7071;
    return min(box(p, vec2(1.1, 0.34)), box(p, vec2(0.34, 1.1)));
  }
  if (kind < 4.5) return box(p, vec2(0.82));
  if (kind < 5.5) return abs(p.x) + abs(p.y) - 1.14;
  if (kind < 6.5) return min(box(p, vec2(1.05, 0.36)), box(p, vec2(0.36, 1.05)));
  if (kind < 7.5) return abs(length(p) - 0.66) - 0.26;
  return abs(length(p) - 1.15) - 0.14;  // the mark around a chosen node
}
void main() {
  vec2 p = (gl_PointCoord - 0.5) * 2.0 * (radius * 1.3 + 1.5) / radius;
  float d = outline(p) * radius;
  float inside = clamp(0.5 - d, 0.0, 1.0);
  float edge = clamp(0.5 - (d - rim), 0.0, 1.0);
  float alpha = max(inside, edge * step(0.01, rim)) * paint.a;
  if (alpha < 0.004) discard;
  vec3 tone = mix(ground, paint.rgb, inside);
  result = vec4(tone * alpha, alpha);
}`;
