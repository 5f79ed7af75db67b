// A chart's two canvases: what it shows, drawn when it changes, and over it what the pointer is at,
// drawn whenever that moves.
class Layers {
  constructor(host, draw, drawOver) {
    this.host = host;
    this.drawBase = draw;
    this.drawOver = drawOver;
    this.base = element("canvas", {});
    this.over = element("canvas", { class: "over" });
    host.append(this.base, this.over);
    this.pending = { base: false, over: false };
    new ResizeObserver(() => this.redraw()).observe(host);
    themeListeners.push(() => this.redraw());
  }

  redraw() { this.pending.base = true; this.redrawOver(); }

  redrawOver() {
    if (!this.pending.over) requestAnimationFrame(() => this.paint());
    this.pending.over = true;
  }

  paint() {
    const { base } = this.pending;
    this.pending = { base: false, over: false };
    this.width = this.host.clientWidth;
    this.height = this.host.clientHeight;
    if (this.width === 0) return;
    if (base) this.drawBase(this.context(this.base), this);
    this.drawOver(this.context(this.over), this);
  }

  // A clean canvas, in CSS pixels.
  context(canvas) {
    const ratio = window.devicePixelRatio || 1;
    const width = Math.round(this.width * ratio), height = Math.round(this.height * ratio);
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    return context;
  }
}

function font(size, weight) {
  return `${weight || 400} ${size}px ${colour("sans")}`;
}

function dot(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fill();
}
