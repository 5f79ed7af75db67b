// A chart over the calls of a step: pointer, keyboard, zoom. What is drawn is its children's.
class StepChart {
  constructor(id, step, view, margins) {
    Object.assign(this, { step, view, margins, selecting: null });
    this.host = byId(id);
    view.charts.push(this);
    this.layers = new Layers(this.host, (context) => this.paintBase(context), (context) => this.paintOver(context));
    this.listen();
  }

  // Children give: yRange(), yTicks(frame), yName, drawBody(context, frame), drawLook(context, frame),
  // stayAt(call, y), neighbour(direction), tip().
  get narrow() { return this.layers.width < 560; }

  paintBase(context) {
    const { layers, view } = this;
    const margins = { ...this.margins, left: this.narrow ? 58 : 72, top: 24 };
    this.frame = new Frame(layers, margins, view.range, this.yRange());
    const yTicks = this.yTicks(ticksFor(this.frame.height, 42));
    this.frame.drawGrid(context, yTicks);
    context.save();
    context.beginPath();
    context.rect(this.frame.left, this.frame.top - 20, this.frame.width, this.frame.height + 20);
    context.clip();
    this.drawBody(context, this.frame);
    context.restore();
    const xTicks = callTicks(view.range[0], view.range[1], ticksFor(this.frame.width, 80));
    this.frame.drawAxes(context, xTicks, yTicks, "call", this.yName);
  }

  paintOver(context) {
    const { frame, view } = this;
    if (!frame) return;
    if (this.selecting) {
      const [from, to] = this.selecting;
      context.fillStyle = colour("accent");
      context.globalAlpha = 0.14;
      context.fillRect(Math.min(from, to), frame.top, Math.abs(to - from), frame.height);
      context.globalAlpha = 1;
    }
    const [low, high] = view.range;
    if (view.cursor < low - 1 || view.cursor > high || view.cursor < 0) return;
    const x = frame.x(view.cursor + 0.5);
    context.strokeStyle = colour("ink");
    context.globalAlpha = 0.35;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, frame.top);
    context.lineTo(x, frame.bottom);
    context.stroke();
    context.globalAlpha = 1;
    context.save();
    context.beginPath();
    context.rect(frame.left, frame.top - 2, frame.width, frame.height + 4);
    context.clip();
    this.drawLook(context, frame);
    context.restore();
  }

  callAt(x) { return Math.max(0, Math.min(this.step.calls - 1, Math.floor(this.frame.xAt(x)))); }

  place(event) {
    const box = this.host.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  lookAt(event) {
    const [x, y] = this.place(event);
    if (!this.frame || !this.frame.holds(x, y)) return this.lookAway();
    const call = this.callAt(x);
    this.view.look(call, this.stayAt(call, this.frame.yAt(y)));
    showTip(this.tip(), event.clientX, event.clientY);
  }

  lookAway() {
    hideTip();
    this.view.look(-1, -1);
  }

  listen() {
    const { host, view } = this;
    let pressed = null;
    host.addEventListener("pointermove", (event) => {
      if (pressed !== null && event.pointerType !== "touch") {
        const [x] = this.place(event);
        this.selecting = Math.abs(x - pressed) > 6 ? [pressed, x] : null;
      }
      this.lookAt(event);
    });
    host.addEventListener("pointerdown", (event) => {
      pressed = this.place(event)[0];
      if (event.pointerType === "touch") this.lookAt(event);
    });
    window.addEventListener("pointerup", () => {
      if (this.selecting) {
        const [from, to] = this.selecting.map((x) => this.frame.xAt(x)).sort((a, b) => a - b);
        this.selecting = null;
        view.show(Math.floor(from), Math.ceil(to));
      }
      pressed = null;
    });
    host.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") this.lookAway();
    });
    host.addEventListener("dblclick", () => view.show(0, this.step.calls));
    host.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    host.addEventListener("keydown", (event) => this.key(event));
    host.addEventListener("blur", () => this.lookAway());
  }

  wheel(event) {
    const [low, high] = this.view.range;
    const [x] = this.place(event);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.view.zoom(Math.exp(event.deltaY / 300), this.frame.xAt(x));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && high - low < this.step.calls) {
      event.preventDefault();
      const by = event.deltaX / this.frame.width * (high - low);
      this.view.show(low + by, high + by);
    }
  }

  key(event) {
    const { view, step } = this;
    const [low, high] = view.range;
    const from = view.cursor >= 0 ? view.cursor : step.data.peak_call;
    const far = Math.max(1, Math.round((high - low) / 20));
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -far, PageDown: far, Home: -step.calls, End: step.calls };
    if (event.key in moves) {
      const by = view.cursor < 0 ? 0 : moves[event.key] * (event.shiftKey ? 10 : 1);
      const call = Math.max(0, Math.min(step.calls - 1, from + by));
      const { first, last } = step.stays;
      const stays = view.stay >= 0 && first[view.stay] <= call && call <= last[view.stay];
      view.look(call, stays ? view.stay : this.largestAt(call));
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      view.look(from, this.neighbour(from, event.key === "ArrowUp" ? 1 : -1));
    } else if (event.key === "+" || event.key === "=") view.zoom(0.5);
    else if (event.key === "-") view.zoom(2);
    else if (event.key === "Escape") { view.show(0, step.calls); return this.lookAway(); }
    else return;
    event.preventDefault();
    this.tellLook();
  }

  largestAt(call) {
    const live = this.step.liveAt(call);
    return live.reduce((best, stay) => (best < 0 || this.step.bytesOf(stay) > this.step.bytesOf(best) ? stay : best), -1);
  }

  // The tip beside the cursor, and its words for who cannot see it.
  tellLook() {
    if (this.view.cursor < 0 || !this.frame) return;
    const box = this.host.getBoundingClientRect();
    showTip(this.tip(), box.left + this.frame.x(this.view.cursor + 0.5), box.top + this.frame.top);
    speak(tipBox.innerText);
  }
}

// Where there are more calls than columns, one call stands for those that share a column: the fullest.
function slotsOf(step, frame, most = Infinity) {
  const [low, high] = frame.xRange;
  const from = Math.floor(low), to = Math.min(step.calls, Math.ceil(high));
  const ratio = window.devicePixelRatio || 1;
  const columns = Math.max(1, Math.min(most, Math.round(frame.width * ratio)));
  const each = Math.max(1, (to - from) / columns);
  const slots = [];
  for (let begin = from; begin < to; begin += each) {
    const first = Math.floor(begin), end = Math.max(first + 1, Math.min(to, Math.floor(begin + each)));
    let call = first;
    for (let c = first; c < end; ++c) if (step.total[c] > step.total[call]) call = c;
    slots.push({ call, left: frame.x(first), right: frame.x(end) });
  }
  return slots;
}
