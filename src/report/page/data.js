// The report's data: written into the page as JSON, long lists as typed arrays in base64.
const ARRAY_TYPES = { u8: Uint8Array, u32: Uint32Array, f32: Float32Array, f64: Float64Array };

function unpack(packed) {
  const binary = atob(packed.data);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return new ARRAY_TYPES[packed.type](bytes.buffer);
}

function unpackAll(object) {
  if (Array.isArray(object)) return object.map((item) => (item && typeof item === "object" ? unpackAll(item) : item));
  if (typeof object.type === "string" && typeof object.data === "string") return unpack(object);
  const result = {};
  for (const [key, value] of Object.entries(object)) {
    result[key] = value && typeof value === "object" ? unpackAll(value) : value;
  }
  return result;
}

function readData() { return unpackAll(JSON.parse(byId("data").textContent)); }

const NO_VALUE = 0xffffffff;
// Kinds of bytes: the plan's roles, of which activations are told apart. What stays longest lies lowest.
const STACK = ["frozen", "weight", "optimizer_state", "statistic", "constant", "gradient", "input", "activation",
  "again", "returning", "workspace"];
const AGAIN = 1, BACKWARD = 2, BEGIN = 4, END = 8;

// The step as charts ask about it.
class Step {
  constructor(data) {
    this.data = data;
    this.stays = data.stays;
    this.calls = data.calls.node.length;
    this.unit = data.unit;
    this.firstTenant = this.indexTenants();
    this.kind = this.findKinds();
    this.byStack = this.sumByStack();
    this.total = this.sumTotals();
  }

  // By stay: where its tenants begin; they lie in the order of stays.
  indexTenants() {
    const { stay } = this.stays.tenants;
    const first = new Uint32Array(this.stays.at.length + 1);
    for (let i = 0; i < stay.length; ++i) ++first[stay[i] + 1];
    for (let s = 0; s + 1 < first.length; ++s) first[s + 1] += first[s];
    return first;
  }

  // By stay: its kind's place in the stack.
  findKinds() {
    const { role, first } = this.stays;
    const { calls, values } = this.data;
    const places = this.data.roles.map((name) => STACK.indexOf(name));
    const activation = this.data.roles.indexOf("activation");
    return role.map((number, stay) => {
      if (number !== activation) return places[number];
      if (calls.flags[first[stay]] & AGAIN) return STACK.indexOf("again");
      const value = this.stays.tenants.value[this.firstTenant[stay]];
      const returning = values.fates[values.fate[value]] === "on its way back";
      return STACK.indexOf(returning ? "returning" : "activation");
    });
  }

  // By place in the stack, by call: live bytes.
  sumByStack() {
    const { size, first, last } = this.stays;
    const sums = STACK.map(() => new Float64Array(this.calls + 1));
    for (let i = 0; i < size.length; ++i) {
      const sum = sums[this.kind[i]];
      sum[first[i]] += size[i] * this.unit;
      sum[last[i] + 1] -= size[i] * this.unit;
    }
    for (const sum of sums) for (let c = 1; c <= this.calls; ++c) sum[c] += sum[c - 1];
    return sums;
  }

  sumTotals() {
    const total = new Float64Array(this.calls);
    for (const sum of this.byStack) for (let c = 0; c < this.calls; ++c) total[c] += sum[c];
    return total;
  }

  // What lives at a call, in the order in which it is stacked.
  liveAt(call) {
    const { first, last } = this.stays;
    const live = STACK.map(() => []);
    for (let i = 0; i < first.length && first[i] <= call; ++i) {
      if (last[i] >= call) live[this.kind[i]].push(i);
    }
    return live.flat();
  }

  // The value in a stay's bytes at a call; NO_VALUE of scratch.
  valueIn(stay, call) {
    const { value, made } = this.stays.tenants;
    let found = value[this.firstTenant[stay]];
    for (let t = this.firstTenant[stay]; t < this.firstTenant[stay + 1] && made[t] <= call; ++t) found = value[t];
    return found;
  }

  kindOf(stay) { return STACK[this.kind[stay]]; }
  bytesOf(stay) { return this.stays.size[stay] * this.unit; }

  callName(call) { return this.data.nodes.names[this.data.calls.node[call]]; }
  opOf(call) { return this.data.nodes.ops[this.data.nodes.op[this.data.calls.node[call]]]; }
  partOf(call) {
    const flags = this.data.calls.flags[call];
    if (flags & BEGIN) return "before the microbatches";
    if (flags & END) return "after the microbatches";
    if (flags & AGAIN) return "forward, recomputed";
    return flags & BACKWARD ? "backward" : "forward";
  }
}
