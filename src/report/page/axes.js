// Axes with ticks at round numbers.
function roundDistance(range, count) {
  const rough = Math.max(range, 1e-12) / count;
  const decade = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5]) if (factor * decade >= rough * (1 - 1e-9)) return factor * decade;
  return 10 * decade;
}

function decimalTicks(low, high, count) {
  const distance = roundDistance(high - low, count);
  const ticks = [];
  for (let n = Math.ceil(low / distance - 1e-9); n * distance <= high + distance * 1e-6; ++n) {
    const at = n * distance || 0;  // no minus zero
    ticks.push({ at, label: Math.abs(at) >= 10000 ? grouped(at) : String(Number(at.toPrecision(6))) });
  }
  return ticks;
}

function callTicks(low, high, count) {
  return decimalTicks(low, high, count).filter((tick) => Number.isInteger(tick.at))
    .map((tick) => ({ at: tick.at, label: grouped(tick.at) }));
}

// A power of two apart, in one unit.
function byteTicks(low, high, count) {
  let unit = 0, one = 1;
  while (high / one >= 1024 && unit + 1 < BYTE_UNITS.length) { one *= 1024; ++unit; }
  const distance = 2 ** Math.ceil(Math.log2(Math.max(high - low, 1) / count));
  const ticks = [];
  for (let at = Math.ceil(low / distance) * distance; at <= high; at += distance) {
    ticks.push({ at, label: at === 0 ? "0" : `${figures(at / one, 3)} ${BYTE_UNITS[unit]}` });
  }
  return ticks;
}

// A rectangle of the canvas, and how numbers become places in it.
class Frame {
  constructor(layers, { left, right = 8, top = 12, bottom = 40 }, x, y) {
    Object.assign(this, { left, top, right: layers.width - right, bottom: layers.height - bottom });
    this.xRange = x;
    this.yRange = y;
  }

  get width() { return this.right - this.left; }
  get height() { return this.bottom - this.top; }
  x(value) { return this.left + this.width * (value - this.xRange[0]) / (this.xRange[1] - this.xRange[0]); }
  y(value) { return this.bottom - this.height * (value - this.yRange[0]) / (this.yRange[1] - this.yRange[0]); }
  xAt(pixel) { return this.xRange[0] + (pixel - this.left) / this.width * (this.xRange[1] - this.xRange[0]); }
  yAt(pixel) { return this.yRange[0] + (this.bottom - pixel) / this.height * (this.yRange[1] - this.yRange[0]); }
  holds(x, y) { return x >= this.left && x <= this.right && y >= this.top - 4 && y <= this.bottom + 4; }

  drawGrid(context, yTicks) {
    context.strokeStyle = colour("grid");
    context.lineWidth = 1;
    context.beginPath();
    for (const { at } of yTicks) {
      const y = Math.round(this.y(at)) + 0.5;
      context.moveTo(this.left, y);
      context.lineTo(this.right, y);
    }
    context.stroke();
  }

  drawAxes(context, xTicks, yTicks, xName, yName) {
    context.font = font(11.5);
    context.fillStyle = colour("quiet");
    context.strokeStyle = colour("rule");
    context.beginPath();
    context.moveTo(this.left - 0.5, this.top);
    context.lineTo(this.left - 0.5, this.bottom + 0.5);
    context.lineTo(this.right, this.bottom + 0.5);
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const { at, label } of yTicks) {
      context.moveTo(this.left - 4.5, this.y(at));
      context.lineTo(this.left - 0.5, this.y(at));
      context.fillText(label, this.left - 9, this.y(at));
    }
    context.textBaseline = "top";
    context.textAlign = "center";
    let free = -Infinity;
    for (const { at, label } of xTicks) {
      context.moveTo(this.x(at), this.bottom + 0.5);
      context.lineTo(this.x(at), this.bottom + 5);
      const half = context.measureText(label).width / 2;
      const middle = Math.min(Math.max(this.x(at), half), this.right + 6 - half);
      if (middle - half < free) continue;
      context.fillText(label, middle, this.bottom + 9);
      free = middle + half + 8;
    }
    context.stroke();
    if (xName) context.fillText(xName, (this.left + this.right) / 2, this.bottom + 25);
    if (yName) {
      context.textAlign = "left";
      context.textBaseline = "bottom";
      context.fillText(yName, this.left, this.top - 6);
    }
  }
}

function ticksFor(pixels, each) { return Math.max(2, Math.floor(pixels / each)); }

function dashed(context, frame, y, name, ink, below) {
  context.save();
  context.strokeStyle = ink;
  context.setLineDash([5, 4]);
  context.lineWidth = 1.25;
  context.beginPath();
  context.moveTo(frame.left, y);
  context.lineTo(frame.right, y);
  context.stroke();
  context.restore();
  context.font = font(11.5, 600);
  context.fillStyle = ink;
  context.textAlign = "right";
  context.textBaseline = below ? "top" : "bottom";
  context.fillText(name, frame.right - 4, below ? y + 4 : y - 3);
}
