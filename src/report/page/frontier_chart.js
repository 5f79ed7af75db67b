// Memory against time: a budget's plans as a line, other planners as points, the plan at hand in a ring.
class FrontierChart {
  constructor(frontier) {
    this.frontier = frontier;
    this.host = byId("frontier-chart");
    this.line = frontier.points.filter((p) => p.planner === frontier.line).sort((a, b) => a.arena - b.arena);
    this.others = merged(frontier.points.filter((p) => p.planner !== frontier.line));
    this.places = [...this.others, ...this.line, { ...frontier.chosen, planner: `this plan (${frontier.chosen.planner})` }]
      .sort((a, b) => a.arena - b.arena);
    this.at = -1;
    this.layers = new Layers(this.host, (context) => this.paint(context), (context) => this.paintOver(context));
    this.listen();
  }

  paint(context) {
    const logs = this.places.map((p) => Math.log2(p.arena)), times = this.places.map((p) => p.ms);
    const low = Math.min(...times), high = Math.max(...times);
    const distance = roundDistance(Math.max(high - low, 1e-9), 5);
    const y = [distance * Math.floor(low / distance), distance * Math.ceil(high / distance + 0.05)];
    const x = [Math.min(...logs) - 0.2, Math.max(...logs) + 0.25];
    const narrow = this.layers.width < 560;
    this.frame = new Frame(this.layers, { left: narrow ? 48 : 64, top: 24 }, x, y);
    const yTicks = decimalTicks(...y, ticksFor(this.frame.height, 46));
    this.frame.drawGrid(context, yTicks);
    this.frame.drawAxes(context, this.memoryTicks(x), yTicks, "arena", "ms a step, predicted");
    this.drawLine(context);
    this.drawOthers(context, [this.drawChosen(context)]);
  }

  // By the logarithm: doublings; of a narrow range, round numbers of the largest unit.
  memoryTicks([low, high]) {
    const ticks = [];
    const notch = high - low > 12 ? 2 : 1;
    if (high - low > 2.5) {
      for (let n = Math.ceil(low / notch); n * notch <= high; ++n) ticks.push({ at: n * notch, label: bytesText(2 ** (n * notch)) });
      return ticks;
    }
    const unit = Math.max(0, Math.min(BYTE_UNITS.length - 1, Math.floor(high / 10)));
    for (const { at } of decimalTicks(2 ** (low - 10 * unit), 2 ** (high - 10 * unit), 6)) {
      if (at > 0) ticks.push({ at: Math.log2(at) + 10 * unit, label: `${figures(at, 3)} ${BYTE_UNITS[unit]}` });
    }
    return ticks;
  }

  place(p) { return [this.frame.x(Math.log2(p.arena)), this.frame.y(p.ms)]; }

  drawLine(context) {
    context.strokeStyle = context.fillStyle = colour("accent");
    context.lineWidth = 2.25;
    context.lineJoin = "round";
    context.beginPath();
    for (const p of this.line) context.lineTo(...this.place(p));
    context.stroke();
    for (const p of this.line) dot(context, ...this.place(p), 2.5);
  }

  // Names stand where neither another does nor a point, within the frame, and off the line where they can.
  drawOthers(context, taken) {
    context.font = font(11.5);
    context.textBaseline = "middle";
    context.textAlign = "left";
    const halfHeight = 7;
    for (const p of this.others) {
      const [x, y] = this.place(p);
      context.fillStyle = colour("gradient");
      dot(context, x, y, 4.5);
      taken.push({ left: x - 5, right: x + 5, top: y });
    }
    for (const p of this.others) {
      const [x, y] = this.place(p);
      const width = context.measureText(p.planner).width;
      const isFree = ([left, top]) => left > this.frame.left && left + width < this.frame.right &&
        top - halfHeight > this.frame.top - 8 && top + halfHeight < this.frame.bottom &&
        taken.every((t) => Math.abs(t.top - top) > 12 || left > t.right || left + width < t.left);
      const isOffLine = ([left, top]) => !this.crosses(left - 2, left + width + 2, top - halfHeight, top + halfHeight);
      const spots = [[x + 9, y - 9], [x - 9 - width, y - 9], [x + 9, y + 11], [x - 9 - width, y + 11],
        [x + 11, y], [x - 11 - width, y], [x - width / 2, y - 17], [x - width / 2, y + 18]].filter(isFree);
      const spot = spots.find(isOffLine) || spots[0];
      if (!spot) continue;
      taken.push({ left: spot[0], right: spot[0] + width, top: spot[1] });
      context.strokeStyle = colour("paper");  // what lies below stays legible, and so does the name
      context.lineWidth = 4;
      context.strokeText(p.planner, ...spot);
      context.fillStyle = colour("quiet");
      context.fillText(p.planner, ...spot);
    }
  }

  // Whether the line goes through that box.
  crosses(left, right, top, bottom) {
    const parts = 24;
    for (let i = 0; i + 1 < this.line.length; ++i) {
      const [x0, y0] = this.place(this.line[i]), [x1, y1] = this.place(this.line[i + 1]);
      for (let k = 0; k <= parts; ++k) {
        const x = x0 + (x1 - x0) * k / parts, y = y0 + (y1 - y0) * k / parts;
        if (x >= left && x <= right && y >= top && y <= bottom) return true;
      }
    }
    return false;
  }

  drawChosen(context) {
    const [x, y] = this.place(this.frontier.chosen);
    context.strokeStyle = colour("warm");
    context.lineWidth = 2.5;
    context.beginPath();
    context.arc(x, y, 8, 0, 7);
    context.stroke();
    context.font = font(12.5, 600);
    context.fillStyle = colour("warm");
    context.textBaseline = "bottom";
    const right = x + 90 < this.frame.right;
    context.textAlign = right ? "left" : "right";
    context.fillText("this plan", right ? x + 12 : x - 12, y - 8);
    return { left: right ? x + 12 : x - 80, right: right ? x + 80 : x - 12, top: y - 15 };
  }

  paintOver(context) {
    if (this.at < 0 || !this.frame) return;
    context.strokeStyle = colour("ink");
    context.lineWidth = 1.5;
    context.beginPath();
    context.arc(...this.place(this.places[this.at]), 11, 0, 7);
    context.stroke();
  }

  tip() {
    const p = this.places[this.at];
    const { chosen } = this.frontier;
    return [element("div", { class: "name" }, p.planner), facts([
      ["arena", `${grouped(p.arena)} bytes (${bytesText(p.arena)})`],
      ["a step", millisecondsText(p.ms)],
      ["to this plan", `${figures(p.arena / chosen.arena, 3)}× the memory, ${figures(p.ms / chosen.ms, 3)}× the time`],
    ])];
  }

  look(at, x, y) {
    this.at = at;
    if (at < 0) hideTip();
    else showTip(this.tip(), x, y);
    this.layers.redrawOver();
  }

  listen() {
    const nearest = (event) => {
      if (!this.frame) return;
      const box = this.host.getBoundingClientRect();
      const distance = (p) => Math.hypot(...this.place(p).map((v, i) => v - (i ? event.clientY - box.top : event.clientX - box.left)));
      let best = 0;
      this.places.forEach((p, i) => { if (distance(p) < distance(this.places[best])) best = i; });
      this.look(distance(this.places[best]) < 40 ? best : -1, event.clientX, event.clientY);
    };
    this.host.addEventListener("pointermove", nearest);
    this.host.addEventListener("pointerdown", nearest);
    this.host.addEventListener("pointerleave", () => this.look(-1));
    this.host.addEventListener("blur", () => this.look(-1));
    this.host.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by || !this.frame) return;
      event.preventDefault();
      const at = Math.max(0, Math.min(this.places.length - 1, this.at + by));
      const box = this.host.getBoundingClientRect();
      const [x, y] = this.place(this.places[at]);
      this.look(at, box.left + x, box.top + y);
      speak(tipBox.innerText);
    });
  }
}

// Planners that give the same plan, as one.
function merged(points) {
  const places = new Map();
  for (const p of points) {
    const key = `${p.arena} ${p.ms}`;
    const same = places.get(key);
    if (!same) places.set(key, { ...p });
    else if (!same.planner.split(", ").includes(p.planner)) same.planner += `, ${p.planner}`;
  }
  return [...places.values()];
}
