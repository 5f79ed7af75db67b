// The arena's addresses over the step: one rectangle per stay. What is thinner than THINNEST is drawn as
// thick as that, the largest last: else thousands of small ones would hide what lies between them.
const THINNEST = 0.35;

class AddressChart extends StepChart {
  constructor(step, view) {
    super("address-chart", step, view, {});
    this.yName = "address";
    const { size } = step.stays;
    this.smallestFirst = Array.from(size.keys()).sort((a, b) => size[a] - size[b]);
  }

  yRange() { return [0, this.step.data.arena]; }
  yTicks(count) { return byteTicks(0, this.step.data.arena, count); }

  boxOf(stay, frame) {
    const { at, size, first, last } = this.step.stays;
    const left = frame.x(first[stay]), right = frame.x(last[stay] + 1);
    const top = frame.y((at[stay] + size[stay]) * this.step.unit), bottom = frame.y(at[stay] * this.step.unit);
    return { left, top, width: Math.max(0.5, right - left), height: Math.max(THINNEST, bottom - top) };
  }

  drawBody(context, frame) {
    const { first, last } = this.step.stays;
    const [low, high] = frame.xRange;
    const isSeen = (stay) => first[stay] <= high && last[stay] + 1 >= low;
    const tone = colour("tone");
    const inks = STACK.map((name) => colour(name));
    for (const stay of this.smallestFirst) {
      const box = this.boxOf(stay, frame);
      if (box.height > THINNEST) break;
      if (!isSeen(stay)) continue;
      context.fillStyle = inks[this.step.kind[stay]];
      context.fillRect(box.left, box.top, box.width, box.height);
    }
    STACK.forEach((_, number) => {
      const tones = [];
      context.fillStyle = inks[number];
      for (let stay = 0; stay < first.length; ++stay) {
        if (this.step.kind[stay] !== number || !isSeen(stay)) continue;
        const box = this.boxOf(stay, frame);
        if (box.height <= THINNEST) continue;
        const framed = box.height > 3 && box.width > 3;
        context.fillRect(box.left, box.top, framed ? box.width - 0.6 : box.width, framed ? box.height - 0.6 : box.height);
        if (stay % 2 === 1 && box.height > 1.2) tones.push(box);
      }
      context.fillStyle = tone;
      for (const box of tones) context.fillRect(box.left, box.top, box.width, box.height);
    });
  }

  stayAt(call, address) {
    const { at, size, first, last } = this.step.stays;
    const unit = address / this.step.unit;
    for (let stay = 0; stay < first.length && first[stay] <= call; ++stay) {
      if (last[stay] >= call && at[stay] <= unit && unit < at[stay] + size[stay]) return stay;
    }
    return -1;
  }

  neighbour(call, direction) {
    const { at } = this.step.stays;
    const live = this.step.liveAt(call).sort((a, b) => at[a] - at[b]);
    const place = live.indexOf(this.view.stay);
    if (place < 0) return this.largestAt(call);
    return live[Math.max(0, Math.min(live.length - 1, place + direction))];
  }

  drawLook(context, frame) {
    if (this.view.stay < 0) return;
    const box = this.boxOf(this.view.stay, frame);
    context.fillStyle = colour("ink");
    context.globalAlpha = 0.55;
    context.fillRect(box.left, box.top, Math.max(1.5, box.width), Math.max(1.5, box.height));
    context.globalAlpha = 1;
  }

  tip() {
    const { step, view } = this;
    if (view.stay >= 0) return tensorTip(step, view.stay, view.cursor);
    return [facts([["here", "nothing lives"]]), element("div", { class: "call" }, callText(step, view.cursor))];
  }
}
