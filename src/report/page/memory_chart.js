// Live bytes at every call, tensor upon tensor, stacked by what they are for.
class MemoryChart extends StepChart {
  constructor(step, view) {
    super("memory-chart", step, view, {});
    this.yName = "live bytes";
  }

  yRange() {
    const { arena, budget } = this.step.data;
    return [0, 1.06 * Math.max(arena, budget < 4 * arena ? budget : 0)];
  }
  yTicks(count) { return byteTicks(0, this.yRange()[1], count); }

  drawBody(context, frame) {
    const { step } = this;
    const slots = slotsOf(step, frame);
    this.drawBands(context, frame, slots);
    this.drawTensors(context, frame, slots);
    const { arena, budget } = step.data;
    if (budget && budget !== arena && budget <= this.yRange()[1]) {
      dashed(context, frame, frame.y(budget), "budget", colour("warm"));
    }
    const near = budget > arena && frame.y(arena) - frame.y(budget) < 18;
    dashed(context, frame, frame.y(arena), "arena", colour("ink"), near);
  }

  // The area of each role.
  drawBands(context, frame, slots) {
    const { byStack } = this.step;
    const base = new Float64Array(slots.length);
    STACK.forEach((kind, at) => {
      context.fillStyle = colour(kind);
      context.beginPath();
      slots.forEach((slot, i) => {
        const y = frame.y(base[i] + byStack[at][slot.call]);
        context.lineTo(slot.left, y);
        context.lineTo(slot.right, y);
      });
      for (let i = slots.length; i-- > 0;) {
        const y = frame.y(base[i]);
        context.lineTo(slots[i].right, y);
        context.lineTo(slots[i].left, y);
        base[i] += byStack[at][slots[i].call];
      }
      context.fill();
    });
  }

  // Every other tensor a tone lighter, where it is high enough to be seen.
  drawTensors(context, frame, slots) {
    context.fillStyle = colour("tone");
    this.fillStays(context, frame, slots, 1.2, (stay) => stay % 2 === 1);
  }

  // What keeps its place from slot to slot is filled once.
  fillStays(context, frame, slots, least, wanted) {
    const open = new Map();  // stay -> its rectangle so far
    const fill = ({ left, right, top, bottom }) => context.fillRect(left, top, right - left, Math.max(least, bottom - top));
    this.eachSlot(slots, (slot, stay, low, high) => {
      if (!wanted(stay)) return;
      const top = frame.y(high), bottom = frame.y(low);
      const run = open.get(stay);
      if (run && run.right === slot.left && Math.abs(run.top - top) < 0.01 && Math.abs(run.bottom - bottom) < 0.01) {
        run.right = slot.right;
        return;
      }
      if (run) fill(run);
      if (bottom - top >= least || least < 1) open.set(stay, { left: slot.left, right: slot.right, top, bottom });
      else open.delete(stay);
    });
    open.forEach(fill);
  }

  // Calls body(slot, stay, low, high) for what lives at each slot's call, from below.
  eachSlot(slots, body) {
    const { first, last } = this.step.stays;
    const live = STACK.map(() => []);
    let next = 0;
    for (const slot of slots) {
      for (; next < first.length && first[next] <= slot.call; ++next) live[this.step.kind[next]].push(next);
      let height = 0;
      for (let at = 0; at < live.length; ++at) {
        const stays = live[at];
        let kept = 0;
        for (let i = 0; i < stays.length; ++i) {
          const stay = stays[i];
          if (last[stay] < slot.call) continue;
          stays[kept++] = stay;
          const size = this.step.bytesOf(stay);
          body(slot, stay, height, height + size);
          height += size;
        }
        stays.length = kept;
      }
    }
  }

  stayAt(call, bytes) {
    let height = 0;
    for (const stay of this.step.liveAt(call)) {
      height += this.step.bytesOf(stay);
      if (bytes < height) return stay;
    }
    return -1;
  }

  neighbour(call, direction) {
    const live = this.step.liveAt(call);
    const at = live.indexOf(this.view.stay);
    if (at < 0) return this.largestAt(call);
    return live[Math.max(0, Math.min(live.length - 1, at + direction))];
  }

  drawLook(context, frame) {
    const { step, view } = this;
    if (view.stay < 0) return;
    const { first, last } = step.stays;
    const slots = slotsOf(step, frame, 500).filter((slot) => slot.call >= first[view.stay] && slot.call <= last[view.stay]);
    context.fillStyle = colour("ink");
    context.globalAlpha = 0.55;
    this.fillStays(context, frame, slots, 0.99, (stay) => stay === view.stay);
    context.globalAlpha = 1;
  }

  tip() {
    const { step, view } = this;
    if (view.stay >= 0) return tensorTip(step, view.stay, view.cursor);
    const pairs = [["live", `${grouped(step.total[view.cursor])} bytes (${bytesText(step.total[view.cursor])})`]];
    STACK.forEach((kind, at) => {
      const bytes = step.byStack[at][view.cursor];
      if (bytes > 0) pairs.push([kindLabel(kind), bytesText(bytes)]);
    });
    return [facts(pairs), element("div", { class: "call" }, callText(step, view.cursor))];
  }
}
