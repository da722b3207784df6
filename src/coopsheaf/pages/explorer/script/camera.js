// What part of the plane is in sight: pixels per unit, and the point in the middle.

class Camera {
  constructor() {
    this.width = 1;
    this.height = 1;
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.home = 1;
  }

  resize(width, height) {
    this.width = Math.max(width, 1);
    this.height = Math.max(height, 1);
    const across = bounds.right - bounds.left + 2;
    const down = bounds.bottom - bounds.top + 2;
    this.home = Math.min((this.width - 16) / across, (this.height - 16) / down, 60);
    this.home = Math.max(this.home, 1e-3);
  }

  fit() {
    this.scale = this.home;
    this.x = (bounds.left + bounds.right) / 2;
    this.y = (bounds.top + bounds.bottom) / 2;
  }

  // Zoom such that the point under a pixel stays under it.
  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const [wx, wy] = this.toWorld(px, py);
    this.scale = Math.min(Math.max(this.scale * factor, this.home / 2), Math.max(this.home, 240));
    this.x = wx - (px - this.width / 2) / this.scale;
    this.y = wy - (py - this.height / 2) / this.scale;
    this.stay();
  }

  move(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.stay();
  }

  center(x, y, scale = this.scale) {
    this.scale = scale;
    this.x = x;
    this.y = y;
  }

  // The graph cannot be lost: the middle of the picture stays over it.
  stay() {
    this.x = Math.min(Math.max(this.x, bounds.left), bounds.right);
    this.y = Math.min(Math.max(this.y, bounds.top), bounds.bottom);
  }

  toWorld(px, py) {
    return [this.x + (px - this.width / 2) / this.scale, this.y + (py - this.height / 2) / this.scale];
  }

  toScreen(x, y) {
    return [(x - this.x) * this.scale + this.width / 2, (y - this.y) * this.scale + this.height / 2];
  }

  // Sizes in pixels: larger when close, never too small to be seen.
  get radius() {
    // From afar nodes fill their place; close by they leave room for the edges between them.
    const near = Math.min(Math.max((this.scale - 8) / 32, 0), 1);
    const [small, large] = content.graph.layout === "grid" ? [0.21, 0.38] : [0.26, 0.48];
    return Math.min(Math.max((large + (small - large) * near) * this.scale, 1.1), 15);
  }

  get stroke() {
    return Math.min(Math.max(0.075 * this.scale, 0.8), 5);
  }
}
