// Curves of training against steps: every value faintly, their running mean on top.
const CURVE_INKS = ["accent", "warm", "activation", "optimizer_state", "gradient", "statistic"];

class CurveChart {
  constructor(host, title, curves) {
    Object.assign(this, { host, curves, at: null });
    this.share = curves[0].share;
    this.curves.forEach((curve, i) => {
      curve.ink = curve.ink || CURVE_INKS[i % CURVE_INKS.length];
      curve.mean = isNoisy(curve.values) ? runningMean(curve.values) : null;
    });
    host.setAttribute("aria-label", `${title} against steps. ${this.words()}`);
    this.layers = new Layers(host, (context) => this.paint(context), (context) => this.paintOver(context));
    this.listen();
  }

  words() {
    return this.curves.map((c) => `${c.name}: ${this.valueText(c.values[c.values.length - 1])} at the end`).join("; ");
  }

  valueText(value) { return this.share ? `${(100 * value).toFixed(2)} %` : figures(value, 4); }

  paint(context) {
    let low = Infinity, high = -Infinity, last = 1;
    for (const { steps, values, mean } of this.curves) {
      last = Math.max(last, steps[steps.length - 1]);
      for (const value of robust(values)) { low = Math.min(low, value); high = Math.max(high, value); }
      if (mean) for (const value of robust(mean)) { low = Math.min(low, value); high = Math.max(high, value); }
    }
    if (!(high > low)) { low -= Math.abs(low) / 10 || 0.5; high += Math.abs(high) / 10 || 0.5; }
    const distance = roundDistance(high - low, 5);
    const y = [distance * Math.floor(low / distance), distance * Math.ceil(high / distance)];
    this.frame = new Frame(this.layers, { left: 52, top: 24 }, [0, last], y);
    const yTicks = decimalTicks(...y, ticksFor(this.frame.height, 42));
    if (this.share) for (const tick of yTicks) tick.label = `${figures(100 * tick.at, 4)} %`;
    this.frame.drawGrid(context, yTicks);
    context.save();
    context.beginPath();
    context.rect(this.frame.left - 4, this.frame.top - 4, this.frame.width + 8, this.frame.height + 8);
    context.clip();
    for (const curve of this.curves) this.drawCurve(context, curve);
    context.restore();
    this.frame.drawAxes(context, callTicks(0, last, ticksFor(this.frame.width, 80)), yTicks, "step");
  }

  drawCurve(context, { steps, values, mean, ink }) {
    context.strokeStyle = context.fillStyle = colour(ink);
    context.lineJoin = "round";
    const stroke = (numbers, alpha, width) => {
      context.globalAlpha = alpha;
      context.lineWidth = width;
      context.beginPath();
      for (let i = 0; i < steps.length; ++i) {
        if (Number.isFinite(numbers[i])) context.lineTo(this.frame.x(steps[i]), this.frame.y(numbers[i]));
      }
      context.stroke();
      context.globalAlpha = 1;
    };
    if (mean) stroke(values, 0.22, 1);
    stroke(mean || values, 1, 2);
    if (steps.length <= 40) for (let i = 0; i < steps.length; ++i) dot(context, this.frame.x(steps[i]), this.frame.y(values[i]), 3);
  }

  paintOver(context) {
    if (!this.at || !this.frame) return;
    for (const { curve, i } of this.at) {
      context.fillStyle = colour(curve.ink);
      dot(context, this.frame.x(curve.steps[i]), this.frame.y((curve.mean || curve.values)[i]), 4.5);
    }
  }

  lookAt(step, x, y) {
    this.at = this.curves.map((curve) => ({ curve, i: nearestIndex(curve.steps, step) }));
    const pairs = this.at.map(({ curve, i }) =>
      [curve.name, `${this.valueText(curve.values[i])} at step ${grouped(curve.steps[i])}`]);
    showTip([facts(pairs)], x, y);
    this.layers.redrawOver();
  }

  lookAway() { this.at = null; hideTip(); this.layers.redrawOver(); }

  listen() {
    const { host } = this;
    const look = (event) => {
      const box = host.getBoundingClientRect();
      if (this.frame) this.lookAt(this.frame.xAt(event.clientX - box.left), event.clientX, event.clientY);
    };
    host.addEventListener("pointermove", look);
    host.addEventListener("pointerdown", look);
    host.addEventListener("pointerleave", () => this.lookAway());
    host.addEventListener("blur", () => this.lookAway());
    host.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by || !this.frame) return;
      event.preventDefault();
      const [low, high] = this.frame.xRange;
      const from = this.at ? this.at[0].curve.steps[this.at[0].i] : high;
      const step = Math.max(low, Math.min(high, from + by * Math.max(1, (high - low) / 50)));
      const box = host.getBoundingClientRect();
      this.lookAt(step, box.left + this.frame.x(step), box.top + this.frame.top);
      speak(tipBox.innerText);
    });
  }
}

// Whether it goes up and down more than it goes anywhere.
function isNoisy(values) {
  let way = 0, low = Infinity, high = -Infinity;
  for (let i = 0; i < values.length; ++i) {
    if (i > 0) way += Math.abs(values[i] - values[i - 1]);
    low = Math.min(low, values[i]);
    high = Math.max(high, values[i]);
  }
  return values.length > 60 && way > 2 * (high - low);
}

// Of as many values before as behind, so that it does not lag.
function runningMean(values) {
  const reach = Math.max(3, Math.round(values.length / 60));
  const sums = new Float64Array(values.length + 1), counts = new Float64Array(values.length + 1);
  for (let i = 0; i < values.length; ++i) {
    const finite = Number.isFinite(values[i]);
    sums[i + 1] = sums[i] + (finite ? values[i] : 0);
    counts[i + 1] = counts[i] + (finite ? 1 : 0);
  }
  return Float64Array.from(values, (_, i) => {
    const near = Math.min(reach, i, values.length - 1 - i);
    return (sums[i + near + 1] - sums[i - near]) / (counts[i + near + 1] - counts[i - near]);
  });
}

// Without the few that would squeeze the rest.
function robust(values) {
  const sorted = Float64Array.from(values).filter(Number.isFinite).sort();
  if (sorted.length < 50) return sorted;
  const at = (share) => sorted[Math.ceil(sorted.length * share) - 1];
  const low = sorted[Math.floor(sorted.length * 0.005)];
  const high = at(0.995) > 3 * at(0.98) && low >= 0 ? at(0.98) : at(0.995);  // the first steps' times, while all is cold
  return [low, high];
}

function nearestIndex(sorted, value) {
  let low = 0, high = sorted.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle;
    else high = middle;
  }
  return Math.abs(sorted[low] - value) <= Math.abs(sorted[high] - value) ? low : high;
}

// One chart for each name, in the order given.
function drawCurves(parent, curves) {
  const charts = new Map();
  for (const curve of curves) charts.set(curve.chart, [...(charts.get(curve.chart) || []), curve]);
  for (const [name, together] of charts) {
    const host = element("div", { class: "chart", tabindex: "0", role: "application" });
    const key = element("ul", { class: "legend" });
    const chart = element("div", {}, element("h3", {}, name[0].toUpperCase() + name.slice(1)), key, host);
    parent.append(chart);
    const made = new CurveChart(host, name, together);
    if (together.length > 1) {
      for (const { name: label, ink } of made.curves) key.append(element("li", {}, swatch(ink), label));
    }
  }
}
