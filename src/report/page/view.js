// What all charts over the step share: the calls that are shown, and the one that is looked at.
class View {
  constructor(calls) {
    this.calls = calls;
    this.range = [0, calls];
    this.cursor = -1;  // a call; -1: none
    this.stay = -1;    // a tensor; -1: none
    this.charts = [];
  }

  show(low, high) {
    const least = Math.min(this.calls, 8);
    const width = Math.min(this.calls, Math.max(least, high - low));
    low = Math.max(0, Math.min(low, this.calls - width));
    this.range = [low, low + width];
    for (const chart of this.charts) chart.layers.redraw();
  }

  zoom(factor, around) {
    const [low, high] = this.range;
    const middle = around ?? (this.cursor >= 0 ? this.cursor + 0.5 : (low + high) / 2);
    this.show(middle - (middle - low) * factor, middle + (high - middle) * factor);
  }

  // Moves into sight what is looked at.
  look(call, stay) {
    this.cursor = call;
    this.stay = stay;
    const [low, high] = this.range;
    if (call >= 0 && call < low) this.show(call, call + high - low);
    else if (call >= high) this.show(call + 1 - (high - low), call + 1);
    else for (const chart of this.charts) chart.layers.redrawOver();
  }
}
