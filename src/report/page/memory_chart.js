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

  // Every other tensor a tone lighter, where it is high enough to be seen. What keeps its place from
  // slot to slot is filled once.
  drawTensors(context, frame, slots) {
    const open = new Map();  // stay -> its rectangle so far
    const fill = ({ left, right, top, bottom }) => context.fillRect(left, top, right - left, bottom - top);
    context.fillStyle = colour("tone");
    this.eachSlot(slots, (slot, stay, low, high) => {
      if (stay % 2 === 0) return;
      const top = frame.y(high), bottom = frame.y(low);
      const run = open.get(stay);
      if (run && run.right === slot.left && Math.abs(run.top - top) < 0.01 && Math.abs(run.bottom - bottom) < 0.01) {
        run.right = slot.right;
        return;
      }
      if (run) fill(run);
      if (bottom - top >= 1.2) open.set(stay, { left: slot.left, right: slot.right, top, bottom });
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

  // By slot: the bytes that the stay lies upon.
  heightsOf(stay, slots) {
    const { first, last } = this.step.stays;
    const { kind, byStack } = this.step;
    const slotFrom = (call) => {  // the first that is not before the call
      let low = 0, high = slots.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (slots[middle].call < call) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    const heights = new Float64Array(slots.length + 1);
    for (let other = 0; other < stay; ++other) {
      if (kind[other] !== kind[stay] || last[other] < first[stay] || first[other] > last[stay]) continue;
      heights[slotFrom(first[other])] += this.step.bytesOf(other);
      heights[slotFrom(last[other] + 1)] -= this.step.bytesOf(other);
    }
    for (let i = 1; i < heights.length; ++i) heights[i] += heights[i - 1];
    slots.forEach((slot, i) => { for (let at = 0; at < kind[stay]; ++at) heights[i] += byStack[at][slot.call]; });
    return heights;
  }

  drawLook(context, frame) {
    const { step, view } = this;
    if (view.stay < 0) return;
    const { first, last } = step.stays;
    const slots = slotsOf(step, frame, 500).filter((slot) => slot.call >= first[view.stay] && slot.call <= last[view.stay]);
    const heights = this.heightsOf(view.stay, slots);
    const size = step.bytesOf(view.stay);
    context.fillStyle = colour("ink");
    context.globalAlpha = 0.55;
    context.beginPath();
    slots.forEach((slot, i) => {
      context.lineTo(slot.left, frame.y(heights[i] + size));
      context.lineTo(slot.right, frame.y(heights[i] + size));
    });
    for (let i = slots.length; i-- > 0;) {
      const y = Math.max(frame.y(heights[i]), frame.y(heights[i] + size) + 1.5);
      context.lineTo(slots[i].right, y);
      context.lineTo(slots[i].left, y);
    }
    context.fill();
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
