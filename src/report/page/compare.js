// Runs beside each other.
const data = readData();
startTheme(byId("theme"));
byId("title").textContent = document.title;

// Each run has one colour, in the table and in all charts.
const runs = data.rows.slice(1).map((row) => row[0]);
const inkOf = (run) => CURVE_INKS[runs.indexOf(run) % CURVE_INKS.length];
for (const curve of data.curves) curve.ink = inkOf(curve.name);

const [heads, ...rows] = data.rows;
const settings = heads.length - data.differing;  // the first column of a recipe's field
const cellClass = (column) => (column === 0 ? "name" : column < settings ? "number" : "number setting");
byId("run-table").append(
  element("thead", {}, element("tr", {}, ...heads.map((head, column) => element("th", { class: cellClass(column) }, head)))),
  element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((text, column) =>
    element("td", { class: cellClass(column) }, column === 0 ? swatch(inkOf(text)) : null, text))))));
byId("training").hidden = data.curves.length === 0;
drawCurves(byId("curves"), data.curves);
document.documentElement.dataset.ready = "yes";
