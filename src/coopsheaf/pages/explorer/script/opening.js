// How the page is opened: on the node that was asked for, if one was.

const CLOSE = 52; // pixels per unit, from which a node and its neighbours are seen well

// The first view, until somebody moves it: all of the graph, or what is around the chosen node.
function settle() {
  const { camera } = view;
  const { node } = content.opening;
  camera.fit();
  if (node < 0) return;
  const [x, y] = [nodes.x[node], nodes.y[node]];
  let scale = Math.max(camera.home, CLOSE);
  if (nodes.count <= MOST_LABELS || content.graph.layout === "rings") {
    // Few enough to be seen all at once, with the chosen one in the middle.
    const across = 2 * Math.max(x - bounds.left, bounds.right - x) + 2;
    const down = 2 * Math.max(y - bounds.top, bounds.bottom - y) + 2;
    scale = Math.min((camera.width - 16) / across, (camera.height - 16) / down, 60);
    scale = Math.max(scale, camera.home / 2);
  }
  camera.center(x, y, scale);
}
