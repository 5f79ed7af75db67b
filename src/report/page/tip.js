// What is said of whatever the pointer, or the keyboard, is at.
const tipBox = byId("tip");

function showTip(content, x, y) {
  tipBox.replaceChildren(...content);
  tipBox.hidden = false;
  const gap = 14, { offsetWidth: width, offsetHeight: height } = tipBox;
  const right = x + gap + width < window.innerWidth;
  tipBox.style.left = `${Math.max(8, right ? x + gap : x - gap - width)}px`;
  tipBox.style.top = `${Math.max(8, Math.min(y + gap, window.innerHeight - height - 8))}px`;
}

function hideTip() { tipBox.hidden = true; }

function speak(text) { byId("spoken").textContent = text; }

function facts(pairs) {
  const list = element("dl", {});
  for (const [name, value] of pairs) list.append(element("dt", {}, name), element("dd", {}, value));
  return list;
}

function callText(step, call) {
  const { planned_ms: planned, measured_ms: measured } = step.data.calls;
  const times = [];
  if (measured) times.push(`${millisecondsText(measured[call])} measured`);
  if (planned) times.push(`${millisecondsText(planned[call])} predicted`);
  return `call ${grouped(call + 1)} of ${grouped(step.calls)}: ${step.callName(call)}, ${step.opOf(call)}, ` +
    `${step.partOf(call)}${times.length ? `; ${times.join(", ")}` : ""}`;
}

// One tensor at one call.
function tensorTip(step, stay, call) {
  const value = step.valueIn(stay, call);
  const kind = step.kindOf(stay);
  const { values } = step.data;
  const name = value === NO_VALUE ? `scratch of ${step.callName(call)}` : values.names[value];
  const bytes = value === NO_VALUE ? step.bytesOf(stay) : values.bytes[value];
  const { first, last, at } = step.stays;
  const whole = first[stay] === 0 && last[stay] + 1 === step.calls;
  const pairs = [
    ["bytes", `${grouped(bytes)} (${bytesText(bytes)})`],
    ["lives", whole ? "the whole step" : `calls ${grouped(first[stay] + 1)} to ${grouped(last[stay] + 1)}`],
    ["lies at", `byte ${grouped(at[stay] * step.unit)}`],
    ["is", kindLabel(kind)],
  ];
  const content = [element("div", { class: "name" }, swatch(kind), element("span", {}, name))];
  if (value !== NO_VALUE) {
    content.push(element("div", { class: "type" }, values.types[values.type[value]]));
    pairs.push(["fate", values.fates[values.fate[value]]], ["why", values.reasons[values.reason[value]]]);
  } else {
    pairs.push(["fate", "scratch"], ["why", "room that one call asks for"]);
  }
  content.push(facts(pairs), element("div", { class: "call" }, callText(step, call)));
  return content;
}
