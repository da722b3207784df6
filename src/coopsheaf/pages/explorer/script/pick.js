// Which node is under the pointer: nodes are sorted into the cells of a grid once.

class Picker {
  constructor() {
    const area = Math.max((bounds.right - bounds.left) * (bounds.bottom - bounds.top), 1);
    this.cell = Math.max(Math.sqrt(area / Math.max(nodes.count, 1)), 1e-6);
    this.columns = Math.floor((bounds.right - bounds.left) / this.cell) + 1;
    this.rows = Math.floor((bounds.bottom - bounds.top) / this.cell) + 1;
    // A long thin graph has more cells than nodes; coarser ones do as well.
    while (this.columns * this.rows > 8 * nodes.count + 64) {
      this.cell *= 2;
      this.columns = Math.floor((bounds.right - bounds.left) / this.cell) + 1;
      this.rows = Math.floor((bounds.bottom - bounds.top) / this.cell) + 1;
    }
    this.start = new Uint32Array(this.columns * this.rows + 1);
    const cells = new Uint32Array(nodes.count);
    for (let i = 0; i < nodes.count; i++) {
      cells[i] = this.column(nodes.x[i]) + this.columns * this.row(nodes.y[i]);
      this.start[cells[i] + 1]++;
    }
    for (let c = 0; c + 1 < this.start.length; c++) this.start[c + 1] += this.start[c];
    const next = this.start.slice();
    this.list = new Uint32Array(nodes.count);
    for (let i = 0; i < nodes.count; i++) this.list[next[cells[i]]++] = i;
  }

  column(x) {
    return Math.min(Math.max(Math.floor((x - bounds.left) / this.cell), 0), this.columns - 1);
  }

  row(y) {
    return Math.min(Math.max(Math.floor((y - bounds.top) / this.cell), 0), this.rows - 1);
  }

  // The node nearest to a point and not farther than `reach`; -1 without one.
  nearest(x, y, reach) {
    let best = -1;
    let least = reach * reach;
    for (let row = this.row(y - reach); row <= this.row(y + reach); row++) {
      for (let column = this.column(x - reach); column <= this.column(x + reach); column++) {
        const cell = row * this.columns + column;
        for (let k = this.start[cell]; k < this.start[cell + 1]; k++) {
          const i = this.list[k];
          const far = (nodes.x[i] - x) ** 2 + (nodes.y[i] - y) ** 2;
          if (far <= least) {
            least = far;
            best = i;
          }
        }
      }
    }
    return best;
  }
}
