// Times by operation; every tensor with its fate.
function drawOps(step) {
  const { planned_ms: planned, measured_ms: measured } = step.data.calls;
  const kinds = new Map();
  for (let call = 0; call < step.calls; ++call) {
    const name = step.opOf(call);
    const kind = kinds.get(name) || { name, runs: 0, planned: 0, measured: 0 };
    kind.runs += 1;
    if (planned) kind.planned += planned[call];
    if (measured) kind.measured += measured[call];
    kinds.set(name, kind);
  }
  const rows = [...kinds.values()].sort((a, b) => (b.measured || b.planned) - (a.measured || a.planned));
  const shown = rows.slice(0, 11);
  if (rows.length > shown.length) {
    shown.push(rows.slice(shown.length).reduce((sum, kind) => ({ name: sum.name, planned: sum.planned + kind.planned,
      measured: sum.measured + kind.measured }), { name: `${rows.length - shown.length} others`, planned: 0, measured: 0 }));
  }
  const most = Math.max(...shown.map((kind) => Math.max(kind.planned, kind.measured)), 1e-12);
  const line = (kind, total) => {
    const bars = element("td", { class: "bars" });
    if (!total && planned) bars.append(element("i", { class: "predicted", style: { width: `${100 * kind.planned / most}%` } }));
    if (!total && measured) bars.append(element("i", { class: "measured", style: { width: `${100 * kind.measured / most}%` } }));
    const cells = [element("td", { class: "name", title: kind.name }, kind.name), bars];
    if (planned) cells.push(element("td", { class: "number quiet" }, millisecondsText(kind.planned)));
    if (measured) cells.push(element("td", { class: "number" }, millisecondsText(kind.measured)));
    return element("tr", total ? { class: "total" } : {}, ...cells);
  };
  const sum = rows.reduce((all, kind) => ({ name: "all calls", planned: all.planned + kind.planned,
    measured: all.measured + kind.measured }), { planned: 0, measured: 0 });
  const heads = [element("th", {}, "operation"), element("th", {})];
  if (planned) heads.push(element("th", { class: "number" }, "predicted"));
  if (measured) heads.push(element("th", { class: "number" }, "measured"));
  byId("ops").append(element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...shown.map((kind) => line(kind, false)), line(sum, true)));
  return sum;
}

// One row per value, with its first stay. A weight after its update is the weight, in the same bytes.
function tensorRows(step) {
  const { value, stay } = step.stays.tenants;
  const kept = ["frozen", "weight", "optimizer_state", "statistic"];
  const { values } = step.data;
  const seen = new Set();
  const rows = [];
  for (let t = 0; t < value.length; ++t) {
    if (value[t] === NO_VALUE || seen.has(value[t])) continue;
    if (kept.includes(step.kindOf(stay[t])) && t > step.firstTenant[stay[t]]) continue;
    seen.add(value[t]);
    const v = value[t];
    rows.push({ name: values.names[v], type: values.types[values.type[v]], bytes: values.bytes[v],
      kind: step.kindOf(stay[t]), fate: values.fates[values.fate[v]], why: values.reasons[values.reason[v]],
      first: step.stays.first[stay[t]], last: step.stays.last[stay[t]] });
  }
  return rows;
}

class TensorTable {
  constructor(step) {
    this.step = step;
    this.rows = tensorRows(step);
    this.by = "bytes";
    this.down = true;
    this.most = 25;
    this.table = byId("tensor-table");
    byId("search").addEventListener("input", () => { this.most = 25; this.draw(); });
    byId("more").addEventListener("click", () => { this.most += 200; this.draw(); });
    this.draw();
  }

  head(key, label) {
    const attributes = key === this.by ? { "aria-sort": this.down ? "descending" : "ascending" } : {};
    if (key === "bytes") attributes.class = "number";
    const turn = () => {
      this.down = key === this.by ? !this.down : key === "bytes";
      this.by = key;
      this.draw();
      this.table.querySelector("th[aria-sort] button").focus();
    };
    return element("th", attributes, element("button", { type: "button", onclick: turn }, label));
  }

  draw() {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (row) => `${row.name} ${row.type} ${kindLabel(row.kind)} ${row.fate} ${row.why}`.toLowerCase();
    const found = words.length ? this.rows.filter((row) => words.every((word) => text(row).includes(word))) : [...this.rows];
    const sign = this.down ? -1 : 1;
    found.sort((a, b) => sign * (a[this.by] < b[this.by] ? -1 : a[this.by] > b[this.by] ? 1 : 0));
    const bytes = found.reduce((sum, row) => sum + row.bytes, 0);
    byId("found").textContent = `${grouped(found.length)} tensors, ${bytesText(bytes)} if all lived at once`;
    byId("more").hidden = found.length <= this.most;
    const heads = [["name", "tensor"], ["type", "type and shape"], ["bytes", "bytes"], ["first", "lives"], ["fate", "fate"], ["why", "why"]];
    this.table.replaceChildren(
      element("thead", {}, element("tr", {}, ...heads.map(([key, label]) => this.head(key, label)))),
      element("tbody", {}, ...found.slice(0, this.most).map((row) => this.line(row))));
  }

  line(row) {
    const whole = row.first === 0 && row.last + 1 === this.step.calls;
    return element("tr", {},
      element("td", { class: "name" }, swatch(row.kind), row.name),
      element("td", { class: "type" }, row.type),
      element("td", { class: "number" }, grouped(row.bytes)),
      element("td", { class: "fate quiet" }, whole ? "whole step" : `${grouped(row.first + 1)} – ${grouped(row.last + 1)}`),
      element("td", { class: "fate" }, row.fate),
      element("td", { class: "why" }, row.why));
  }
}
