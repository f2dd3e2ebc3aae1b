// Sorted arrays.

/** How many entries of a sorted array are at most x. */
function upper(sorted, x) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= x) low = middle + 1; else high = middle;
  }
  return low;
}

/** How many entries of a sorted array are below x. */
function lower(sorted, x) {
  let count = upper(sorted, x);
  while (count && sorted[count - 1] === x) count--;
  return count;
}

function isSorted(values) {
  for (let i = 1; i < values.length; i++) if (values[i] < values[i - 1]) return false;
  return true;
}

/** The indices that sort an array; those of equal values rise. */
function argsort(values) {
  const n = values.length, order = new Uint32Array(n);
  for (let i = 0; i < n; i++) order[i] = i;
  if (isSorted(values)) return order;
  // Whole numbers are sorted with the index in their low digits: numbers alone sort faster than
  // with a comparison in JavaScript. The sum must stay below 2^53.
  let least = Infinity, most = -Infinity, whole = true;
  for (let i = 0; i < n; i++) {
    const x = values[i];
    if (x < least) least = x;
    if (x > most) most = x;
    if (x !== Math.floor(x)) whole = false;
  }
  if (!whole || (most - least + 1) * n > 2 ** 53) {
    return order.sort((a, b) => values[a] - values[b] || a - b);
  }
  const keys = new Float64Array(n);
  for (let i = 0; i < n; i++) keys[i] = (values[i] - least) * n + i;
  keys.sort();
  for (let i = 0; i < n; i++) order[i] = keys[i] % n;
  return order;
}
