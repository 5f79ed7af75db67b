// The report of one step, from top to bottom.
function drawHeadlines(parent, headlines) {
  for (const { label, value, note } of headlines) {
    parent.append(element("div", {}, element("dt", {}, label), element("dd", { class: "figure" }, value),
      element("dd", { class: "note" }, note)));
  }
}

function drawChoices(data) {
  if (!data.fit) return;
  byId("choices").hidden = false;
  const { plain_arena_bytes: arena, plain_step_ms: ms, choices } = data.fit;
  byId("choices-said").textContent = `As typed, with everything kept, the step takes ${bytesText(arena)} and ` +
    `${millisecondsText(ms)}. ` + (choices.length ? "From there to the plan, technique by technique, times as predicted:"
    : "That fits: nothing had to be done.");
  const signed = (number, text) => (number < 0 ? "−" : number > 0 ? "+" : "") + text(Math.abs(number));
  for (const { what, flags, tier, saved_bytes: saved, paid_ms: paid } of choices) {
    byId("choice-table").append(element("tr", {}, element("td", {}, what, element("span", { class: "note" }, element("code", {}, flags), ` ${tier}`)),
      element("td", { class: "number" }, signed(-saved, bytesText)),
      element("td", { class: "number" }, signed(paid, millisecondsText))));
  }
  if (choices.length) {
    byId("choice-table").append(element("tr", { class: "total" }, element("td", {}, "the plan"),
      element("td", { class: "number" }, bytesText(data.arena)),
      element("td", { class: "number" }, millisecondsText(data.predicted_ms))));
  }
}

function drawKinds(step) {
  const most = (at) => step.byStack[at].reduce((a, b) => Math.max(a, b), 0);
  STACK.forEach((kind, at) => {
    if (most(at) > 0) byId("kinds").append(element("li", {}, swatch(kind), kindLabel(kind)));
  });
}

function drawFrontier(data) {
  if (!data.frontier) return;
  byId("frontier").hidden = false;
  const { chosen, points, line, costs } = data.frontier;
  const faster = points.filter((p) => p.planner === line && p.arena > chosen.arena && p.ms < chosen.ms)
    .sort((a, b) => a.arena - b.arena)[0];
  const price = faster ? (chosen.ms - faster.ms) / ((faster.arena - chosen.arena) / 2 ** 20) : 0;
  byId("frontier-said").textContent = price > 0
    ? `Here, a MiB more would save ${millisecondsText(price)} a step. Times: ${costs}.`
    : `More memory would not make this plan faster. Times: ${costs}.`;
  new FrontierChart(data.frontier);
}

function drawTimes(step, view) {
  const { data } = step;
  if (!data.calls.planned_ms) return;
  byId("times").hidden = false;
  const sum = drawOps(step);
  const said = [`Predicted ${millisecondsText(data.predicted_ms)} a step (${data.costs}).`];
  if (data.calls.measured_ms) said.push(`Timed one by one, the calls took ${millisecondsText(sum.measured)}.`);
  if (data.measured_ms) said.push(`Steps of the run took ${millisecondsText(data.measured_ms)}, by the median, feeding included.`);
  if (!data.calls.measured_ms) {
    byId("times").querySelector("h2").textContent = "Predicted time";
    said.push("Nothing has been measured.");
  }
  byId("times-said").textContent = said.join(" ");
  new TimeChart(step, view);
}

function drawRecipe(lines) {
  const groups = new Map();
  for (const [group, name, value, chosen] of lines) {
    if (!groups.has(group)) groups.set(group, element("dl", {}));
    const mark = chosen ? { class: "chosen" } : {};
    groups.get(group).append(element("dt", mark, name.replaceAll("-", " ")), element("dd", mark, value || "none"));
  }
  for (const [group, list] of groups) {
    byId("recipe-lines").append(element("div", { class: "group" }, element("h3", {}, group), list));
  }
}

const data = readData();
const step = new Step(data);
const view = new View(step.calls);
startTheme(byId("theme"));
byId("title").textContent = data.title;
byId("subtitle").textContent = data.subtitle;
drawHeadlines(byId("headlines"), data.headlines);
byId("notes").hidden = data.notes.length === 0;
byId("notes").append(...data.notes.map((note) => element("li", {}, `Not shown: ${note}.`)));
byId("memory-said").textContent = `It is fullest at call ${grouped(data.peak_call + 1)} of ${grouped(step.calls)}, ` +
  `${step.callName(data.peak_call)}.` + (data.microbatches > 1 ? ` The calls between run ${data.microbatches} times, once for each microbatch.` : "");
drawChoices(data);
drawKinds(step);
new MemoryChart(step, view);
new AddressChart(step, view);
drawFrontier(data);
drawTimes(step, view);
if (data.curves) { byId("training").hidden = false; drawCurves(byId("curves"), data.curves); }
new TensorTable(step);
drawRecipe(data.recipe);
byId("zoom-in").addEventListener("click", () => view.zoom(0.5));
byId("zoom-out").addEventListener("click", () => view.zoom(2));
byId("zoom-all").addEventListener("click", () => view.show(0, step.calls));
// A touch beside the charts ends the look.
document.addEventListener("pointerdown", (event) => {
  if (event.pointerType !== "touch" || event.target.closest(".chart")) return;
  hideTip();
  view.look(-1, -1);
});
document.documentElement.dataset.ready = "yes";
