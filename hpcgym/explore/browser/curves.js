// Step functions of time: processors in use, queued jobs, power.

const CURVE_BLOCK = 64;

/** A curve that has values[i] from times[i] on, and 0 before; the times rise. */
function curveOf(times, values) {
  const n = times.length, blocks = Math.ceil(n / CURVE_BLOCK);
  const integral = new Float64Array(n);  // up to each time
  // of each block the least and the greatest value, so that wide views need not look at all
  const least = new Float64Array(blocks).fill(Infinity);
  const most = new Float64Array(blocks).fill(-Infinity);
  for (let i = 0; i < n; i++) {
    if (i) integral[i] = integral[i - 1] + values[i - 1] * (times[i] - times[i - 1]);
    const block = (i / CURVE_BLOCK) | 0;
    least[block] = Math.min(least[block], values[i]);
    most[block] = Math.max(most[block], values[i]);
  }
  return { times, values, integral, least, most };
}

/** The sum of the amounts of intervals over time; each counts 1 if there are no amounts. */
function stacked(from, to, amounts, begins = argsort(from), ends = argsort(to)) {
  const n = from.length;
  const times = new Float64Array(2 * n), values = new Float64Array(2 * n);
  let total = 0, count = 0;
  for (let i = 0, j = 0; j < n; count++) {
    const now = i < n ? Math.min(from[begins[i]], to[ends[j]]) : to[ends[j]];
    for (; i < n && from[begins[i]] === now; i++) total += amounts ? amounts[begins[i]] : 1;
    for (; j < n && to[ends[j]] === now; j++) total -= amounts ? amounts[ends[j]] : 1;
    times[count] = now;
    values[count] = total;
  }
  return curveOf(times.slice(0, count), values.slice(0, count));
}

/** The value of a curve at a time. */
function valueAt(curve, time) {
  const i = upper(curve.times, time) - 1;
  return i < 0 ? 0 : curve.values[i];
}

/** Mean, least and greatest value of a curve in each of some equal bins of [t0, t1). */
function envelope(curve, t0, t1, bins) {
  const { times, values, integral, least, most } = curve;
  const mean = new Float32Array(bins), low = new Float32Array(bins), high = new Float32Array(bins);
  const width = (t1 - t0) / bins;
  const upTo = (time, i) => (i < 0 ? 0 : integral[i] + values[i] * (time - times[i]));
  let i = upper(times, t0) - 1, before = upTo(t0, i);
  for (let bin = 0; bin < bins; bin++) {
    const right = t0 + ((t1 - t0) * (bin + 1)) / bins;
    let a = i < 0 ? 0 : values[i], b = a, next = i + 1;
    while (next < times.length && times[next] < right) {
      const last = next + CURVE_BLOCK - 1;
      if (next % CURVE_BLOCK === 0 && last < times.length && times[last] < right) {
        a = Math.min(a, least[next / CURVE_BLOCK]);
        b = Math.max(b, most[next / CURVE_BLOCK]);
        next = last + 1;
      } else {
        a = Math.min(a, values[next]);
        b = Math.max(b, values[next++]);
      }
    }
    i = next - 1;
    const now = upTo(right, i);
    mean[bin] = (now - before) / width;
    before = now;
    low[bin] = a;
    high[bin] = b;
  }
  return { mean, low, high };
}
