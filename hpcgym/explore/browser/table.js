// The jobs in view as a table: for readers of the screen by ear, and to sort them.

const MOST_LISTED = 200;
const sorting = { by: "submitted", down: false };

/** Columns: title -> [what it is sorted by, what is shown] of a job. */
function tableColumns() {
  const { jobs, runs, clock } = S, columns = { job: [(j) => jobs.number[j], jobButton] };
  for (const [kind, { names, of }] of Object.entries(jobs.kinds)) columns[kind] = [(j) => of[j], (j) => names[of[j]]];
  const time = (of) => [of, (j) => span(of(j))];
  Object.assign(columns, {
    submitted: [(j) => jobs.submit[j], (j) => clock.seconds(jobs.submit[j])],
    processors: [(j) => jobs.size[j], (j) => counted(jobs.size[j])],
    requested: time((j) => jobs.requested[j]),
    ran: time(measureOf(jobs, runs[0], "run_time")),
  });
  for (const run of runs) {
    const of = runs.length > 1 ? `, ${run.name}` : "";
    columns[`waited${of}`] = time(measureOf(jobs, run, "wait_time"));
    const slowdown = measureOf(jobs, run, "bsld");
    columns[`bounded slowdown${of}`] = [slowdown, (j) => slowdown(j).toFixed(1)];
  }
  return columns;
}

/** Rows of the jobs that wait or run in view in any schedule, and that the filter leaves in. */
function jobsInView() {
  const { t0, t1 } = S.view, found = [];
  for (let j = 0; j < S.jobs.n; j++) {
    const seen = S.runs.some((run) => run.end[j] >= t0 && (!run.matches || run.matches[j]));
    if (seen && S.jobs.submit[j] < t1) found.push(j);
  }
  return found;
}

function sortedBy(list, of, down) {
  const keys = Float64Array.from(list, of), order = argsort(down ? keys.map((x) => -x) : keys);
  return Array.from(order.slice(0, MOST_LISTED), (i) => list[i]);
}

/**
 * Fill a table that its headings sort.
 * columns: as those of jobs; order: {by, down}, which a click changes, before it asks `again`;
 * last: rows that stay below the others. Returns how many rows there are.
 */
function fillSorted(table, columns, list, order, again, last = []) {
  if (!columns[order.by]) [order.by] = Object.keys(columns);
  const listed = [...sortedBy(list, columns[order.by][0], order.down), ...last];
  const heads = Object.keys(columns).map((title) => {
    const mine = title === order.by;
    const turn = () => { Object.assign(order, { by: title, down: mine && !order.down }); again(); };
    const sorted = mine ? (order.down ? "descending" : "ascending") : "none";
    return element("th", { scope: "col", "aria-sort": sorted }, element("button", { onclick: turn }, title));
  });
  const rows = listed.map((one) => {
    const [first, ...others] = Object.values(columns).map(([, shown]) => shown(one));
    return element("tr", {}, element("th", { scope: "row" }, first), ...others.map((text) => element("td", {}, text)));
  });
  table.replaceChildren(element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
  return listed.length;
}

function showTable() {
  if (!$("listed").open) return;
  const list = jobsInView(), count = fillSorted($("jobs"), tableColumns(), list, sorting, showTable);
  const first = list.length > count ? `; the first ${MOST_LISTED} are listed` : "";
  $("count").textContent = `${plural(list.length, "job")} in view${first}.`;
}
