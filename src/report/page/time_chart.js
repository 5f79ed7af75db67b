// Time from the beginning of the step to the end of every call: predicted, and measured.
class TimeChart extends StepChart {
  constructor(step, view) {
    super("time-chart", step, view, {});
    this.yName = "ms";
    const sums = (times) => {
      const sum = new Float64Array(times.length + 1);
      for (let c = 0; c < times.length; ++c) sum[c + 1] = sum[c] + times[c];
      return sum;
    };
    this.lines = [];
    const { planned_ms: planned, measured_ms: measured } = step.data.calls;
    if (planned) this.lines.push({ name: "predicted", ink: "quiet", sum: sums(planned), dash: [5, 4] });
    if (measured) this.lines.push({ name: "measured", ink: "accent", sum: sums(measured), dash: [] });
  }

  yRange() {
    const [low, high] = this.view.range.map(Math.round);
    const lowest = Math.min(...this.lines.map(({ sum }) => sum[low]));
    const most = Math.max(...this.lines.map(({ sum }) => sum[high]));
    return [lowest, most > lowest ? lowest + (most - lowest) * 1.05 : lowest + 1];
  }
  yTicks(count) { return decimalTicks(...this.yRange(), count); }

  drawBody(context, frame) {
    for (const { sum, ink, dash } of this.lines) {
      context.strokeStyle = colour(ink);
      context.lineWidth = 2;
      context.setLineDash(dash);
      context.beginPath();
      const [low, high] = frame.xRange.map(Math.round);
      const each = Math.max(1, Math.floor((high - low) / (2 * frame.width)));
      for (let c = low; c <= high; c += each) context.lineTo(frame.x(c), frame.y(sum[c]));
      context.lineTo(frame.x(high), frame.y(sum[high]));
      context.stroke();
      context.setLineDash([]);
    }
    this.drawKey(context, frame);
  }

  drawKey(context, frame) {
    let y = frame.top + 12;
    context.font = font(12);
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (const { name, ink, dash } of this.lines) {
      context.strokeStyle = colour(ink);
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(frame.left + 12, y);
      context.lineTo(frame.left + 36, y);
      context.stroke();
      context.setLineDash([]);
      context.fillStyle = colour("ink");
      context.fillText(name, frame.left + 44, y);
      y += 18;
    }
  }

  stayAt() { return -1; }
  neighbour() { return -1; }
  largestAt() { return -1; }

  drawLook(context, frame) {
    for (const { sum, ink } of this.lines) {
      context.fillStyle = colour(ink);
      context.beginPath();
      context.arc(frame.x(this.view.cursor + 1), frame.y(sum[this.view.cursor + 1]), 4, 0, 7);
      context.fill();
    }
  }

  tip() {
    const { cursor } = this.view;
    const pairs = this.lines.map(({ name, sum }) => [name, `${millisecondsText(sum[cursor + 1])} by its end`]);
    return [facts(pairs), element("div", { class: "call" }, callText(this.step, cursor))];
  }
}
