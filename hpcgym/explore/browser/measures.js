// What a time comes to under a schedule: of the jobs submitted in it, and of the machine.

/** Rows of the jobs submitted in [t0, t1) that metrics are of, and that a filter leaves in. */
function selectedJobs(jobs, runs, t0, t1) {
  const from = lower(jobs.submit, t0), rows = new Int32Array(lower(jobs.submit, t1) - from);
  let count = 0;
  for (let j = from; j < from + rows.length; j++) {
    const isCounted = runs.every((run) => !run.counted || run.counted[j]);
    if (isCounted && runs.some((run) => !run.matches || run.matches[j])) rows[count++] = j;
  }
  return rows.subarray(0, count);
}

/** A quantile of sorted values, between two of them by their distance, as numpy's percentile. */
function quantile(sorted, share) {
  if (!sorted.length) return NaN;
  const at = share * (sorted.length - 1), low = Math.floor(at), next = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (sorted[next] - sorted[low]) * (at - low);
}

/**
 * Measures of a schedule: of some jobs, and of the machine in [t0, t1), whoever uses it then.
 * waits, slowdowns and areas (processor seconds) have a value of each job.
 */
function measuresOf(jobs, run, rows, t0, t1) {
  const n = rows.length, waits = new Float64Array(n), slowdowns = new Float64Array(n), areas = new Float64Array(n);
  let wait = 0, slowdown = 0, area = 0, most = NaN;
  for (let i = 0; i < n; i++) {
    const j = rows[i];
    wait += waits[i] = run.start[j] - jobs.submit[j];
    slowdown += slowdowns[i] = boundedSlowdown(jobs, run, j);
    if (!(slowdowns[i] <= most)) most = slowdowns[i];
    area += areas[i] = jobs.size[j] * (run.end[j] - run.start[j]);
  }
  const sorted = waits.slice().sort(), one = (curve) => envelope(curve, t0, t1, 1);
  return {
    waits, slowdowns, areas,
    core_hours: area / HOUR,
    utilization: one(run.used).mean[0] / run.processors,
    mean_wait: wait / n,
    median_wait: quantile(sorted, 0.5),
    p95_wait: quantile(sorted, 0.95),
    max_wait: quantile(sorted, 1),
    mean_bsld: slowdown / n,
    max_bsld: most,
    max_queue: one(run.queue).high[0],
  };
}

/**
 * Groups of some jobs, those with most processor seconds in the first schedule first; groups beyond
 * `most` are one, without a place: {place, groups, jobs, share, waits, slowdowns}. Waits and
 * slowdowns are means, one a schedule; of: the place of the group of each job.
 */
function groupsOf(rows, of, groups, measured, most) {
  /** The sum over the jobs of each group. */
  const perGroup = (value) => {
    const sums = new Float64Array(groups);
    for (let i = 0; i < rows.length; i++) sums[of[rows[i]]] += value ? value[i] : 1;
    return sums;
  };
  const jobs = perGroup(null), area = perGroup(measured[0].areas);
  const waits = measured.map((one) => perGroup(one.waits)), slowdowns = measured.map((one) => perGroup(one.slowdowns));
  const all = area.reduce((sum, x) => sum + x, 0) || 1, order = [...argsort(area.map((x) => -x))].filter((place) => jobs[place]);
  const summed = (places) => {
    const sum = (values) => places.reduce((now, place) => now + values[place], 0), count = sum(jobs);
    const means = (each) => each.map((values) => sum(values) / count);
    const place = places.length > 1 ? -1 : places[0];
    return {
      place, groups: places.length, jobs: count, share: sum(area) / all, waits: means(waits), slowdowns: means(slowdowns),
    };
  };
  const rest = order.length > most + 1 ? order.slice(most) : [];
  const named = rest.length ? order.slice(0, most) : order;
  return [...named.map((place) => summed([place])), ...(rest.length ? [summed(rest)] : [])];
}

/** Edges of bins that are equal on a logarithmic scale, from 1 to beyond the greatest value. */
function logarithmicEdges(most, perDecade) {
  const bins = Math.max(Math.ceil(Math.log10(Math.max(most || 0, 10)) * perDecade), perDecade);
  return Float64Array.from({ length: bins + 1 }, (_, i) => 10 ** (i / perDecade));
}

/** The share of values that are at most `least`, and of the others the share in each bin. */
function histogram(values, least, edges) {
  const bins = new Float64Array(edges.length - 1);
  let low = 0;
  for (let i = 0; i < values.length; i++) {
    if (values[i] <= least) low++; else bins[Math.min(Math.max(upper(edges, values[i]) - 1, 0), bins.length - 1)]++;
  }
  const count = values.length || 1;
  return { above: (values.length - low) / count, bins: bins.map((x) => x / count) };
}
