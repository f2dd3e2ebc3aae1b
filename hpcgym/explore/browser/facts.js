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
    const words = ["Click a job. ", key("/"), " finds one, ", key("?"), " tells all keys."];
    $("detail").replaceChildren(element("p", { className: "soft" }, ...words));
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
  const none = { className: "close", title: "pick none", "aria-label": "Pick none", onclick: () => pick(-1) };
  const close = element("button", none, "×");
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
  const bold = (className, text) => element("b", { className }, text);
  const who = plural(overtook.length, "later job");
  const later = element("p", {}, bold("overtook", who), " started before it. ", ...buttonsOf(overtook));
  const alone = run.start[j] > jobs.submit[j] ? "No job ended as it started." : "It started at once.";
  const ended = freed.length
    ? ["It started when ", bold("freed", plural(freed.length, "job")), " ended: ", ...buttonsOf(freed)]
    : [alone];
  const why = element("div", { id: `why${k}`, className: "why" });
  return element("section", {}, element("h3", {}, run.name), facts, later, element("p", {}, ...ended), why);
}

/** How a job fares in the second schedule beside the first. */
function comparedFacts(j) {
  if (S.runs.length < 2) return [];
  const [a, b] = S.runs, by = b.start[j] - a.start[j];
  const moved = `In ${b.name} it starts ${span(Math.abs(by))} ${by < 0 ? "earlier" : "later"}.`;
  return [element("p", { className: "soft" }, by ? moved : "It starts at the same time in both.")];
}
