// Elements of the page. Text from a trace only ever becomes text here, never markup.

/** An element with properties (those of dataset, and listeners as on...), and what is in it. */
function element(name, properties = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "dataset") Object.assign(made.dataset, value);
    else if (key.startsWith("aria") || key === "role" || key === "scope") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...inside);
  return made;
}

/** A list of terms and their values. */
function definitions(pairs) {
  const entries = pairs.flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)]);
  return element("dl", {}, ...entries);
}

/** Let the browser save something as a file. */
function download(name, contents, type) {
  const url = URL.createObjectURL(contents instanceof Blob ? contents : new Blob([contents], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** A name of a file from that of the workload: letters and digits alone. */
const fileName = (ending) => `${(S.head.name.match(/[A-Za-z0-9]+/g) || ["schedule"]).join("-").slice(0, 80)}${ending}`;

/** The legend; what stands for names is a button that filters by it. */
function showLegend() {
  const entries = S.palette.legend.map(([colour, text, wanted]) => {
    const mark = element("i");
    mark.style.background = colour;
    return wanted
      ? element("button", { className: "entry", title: `only ${text}`, onclick: () => setFilter(wanted) }, mark, text)
      : element("span", { className: "entry" }, mark, text);
  });
  $("legend").replaceChildren(...entries);
}

/** The name of a schedule behind the colour of its lines, if it is shown. */
function scheduleName(name) {
  const swatch = element("i"), k = S.runs.findIndex((run) => run.name === name);
  if (k >= 0) swatch.style.background = lineColour(k);
  return element("span", { className: "schedule", title: k < 0 ? "" : S.runs[k].rules }, swatch, name);
}

/** The metrics that tell most, a line a schedule; or all of them, a line a metric. */
function showStatistics() {
  const { names, first, rows } = S.head.statistics, all = $("statistics").dataset.all === "1";
  const titled = ({ title, unit }) => (unit ? `${title} (${unit})` : title);
  const head = (scope, ...inside) => element("th", { scope }, ...inside);
  const cell = ({ name, values }, k) => {
    const [text, best] = values[k];
    return element("td", { className: best ? "best" : "", dataset: { metric: name } }, best ? `${text} ★` : text);
  };
  const row = (...cells) => element("tr", {}, ...cells);
  const shown = rows.filter(({ name }) => first.includes(name));
  const top = all
    ? names.map((name) => head("col", scheduleName(name)))
    : shown.map((metric) => head("col", titled(metric)));
  const lines = all
    ? rows.map((metric) => row(head("row", titled(metric)), ...names.map((_, k) => cell(metric, k))))
    : names.map((name, k) => row(head("row", scheduleName(name)), ...shown.map((metric) => cell(metric, k))));
  $("statistics").replaceChildren(element("thead", {}, row(element("td"), ...top)), element("tbody", {}, ...lines));
}
