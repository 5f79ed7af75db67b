// Numbers for people.
function grouped(number) { return Math.round(number).toLocaleString("en-US"); }

function figures(number, count) {
  if (number === 0) return "0";
  if (Math.abs(number) >= 10 ** count) return grouped(number);
  return String(Number(number.toPrecision(count)));
}

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

function bytesText(bytes) {
  let unit = 0;
  while (bytes >= 1024 && unit + 1 < BYTE_UNITS.length) { bytes /= 1024; ++unit; }
  return `${bytes >= 100 ? Math.round(bytes) : figures(bytes, 3)} ${BYTE_UNITS[unit]}`;
}

function millisecondsText(ms) {
  if (ms === 0) return "0 ms";
  if (ms < 0.1) return `${figures(1000 * ms, 3)} µs`;
  if (ms >= 10000) return `${figures(ms / 1000, 3)} s`;
  return `${figures(ms, 3)} ms`;
}

// What bytes are for, as people read it.
const KIND_LABELS = { input: "data", workspace: "scratch", activation: "activations", again: "recomputed",
  returning: "activation gradients", weight: "weights", gradient: "weight gradients", optimizer_state: "optimizer state",
  statistic: "running statistics", constant: "constants", frozen: "frozen weights" };
function kindLabel(kind) { return KIND_LABELS[kind] || kind; }
