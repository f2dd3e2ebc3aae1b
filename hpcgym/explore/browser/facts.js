// The facts of the picked job.

const MOST_NAMED = 8;

/** Numbers of jobs as buttons that pick them. */
function buttonsOf(list) {
  const go = (j) => element("button", { className: "job", onclick: () => pick(j, true) }, String(S.jobs.number[j]));
  const more = list.length > MOST_NAMED ? [` and ${counted(list.length - MOST_NAMED)} more`] : [];
  return [...list.slice(0, MOST_NAMED).map(go), ...more];
}

function showFacts() {
  const j = S.picked;
  document.body.dataset.job = j < 0 ? "" : S.jobs.number[j];
  if (j < 0) {
    const key = (name) => element("kbd", {}, name);
    const hint = element("p", { className: "soft" }, "Click a job. ", key("/"), " finds one, ", key("?"), " tells all keys.");
    $("detail").replaceChildren(hint);
    return;
  }
  const { jobs, clock } = S;
  const names = Object.entries(jobs.kinds).map(([kind, { names, of }]) => [kind, names[of[j]]]);
  const facts = definitions([
    ...names,
    ["processors", counted(jobs.size[j])],
    ["requested", span(jobs.requested[j])],
    ["submitted", clock.seconds(jobs.submit[j])],
  ]);
  const close = element("button", { className: "close", title: "pick none", "aria-label": "Pick none", onclick: () => pick(-1) }, "×");
  const title = element("h2", {}, `Job ${jobs.number[j]}`, close);
  $("detail").replaceChildren(title, facts, ...S.runs.map((run, k) => factsIn(run, k, j)), ...comparedFacts(j));
}

/** What became of a job in one schedule. */
function factsIn(run, k, j) {
  const { jobs, clock } = S, { overtook, freed } = storyOf(jobs, run, j);
  const facts = definitions([
    ["waited", span(run.start[j] - jobs.submit[j])],
    ["started", clock.seconds(run.start[j])],
    ["ran", span(run.end[j] - run.start[j])],
    ["bounded slowdown", boundedSlowdown(jobs, run, j).toFixed(1)],
  ]);
  const later = element("p", {}, element("b", { className: "overtook" }, counted(overtook.length)),
    overtook.length === 1 ? " later job started before it. " : " later jobs started before it. ", ...buttonsOf(overtook));
  const ended = freed.length
    ? element("p", {}, "It started when ", element("b", { className: "freed" }, plural(freed.length, "job")), " ended: ", ...buttonsOf(freed))
    : element("p", {}, run.start[j] > jobs.submit[j] ? "No job ended as it started." : "It started at once.");
  const why = element("div", { id: `why${k}`, className: "why" });
  return element("section", {}, element("h3", {}, run.name), facts, later, ended, why);
}

/** How a job fares in the second schedule beside the first. */
function comparedFacts(j) {
  if (S.runs.length < 2) return [];
  const [a, b] = S.runs, by = b.start[j] - a.start[j];
  const text = by === 0 ? "It starts at the same time in both." : `In ${b.name} it starts ${span(Math.abs(by))} ${by < 0 ? "earlier" : "later"}.`;
  return [element("p", { className: "soft" }, text)];
}
