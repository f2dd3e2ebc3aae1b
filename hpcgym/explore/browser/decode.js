// What Python tells (hpcgym/explore/page.py): a header and columns of numbers.

/** Header and columns, name -> array, of a text in JSON. */
function unpack(text) {
  const { columns, ...head } = JSON.parse(text);
  for (const name of Object.keys(columns)) columns[name] = Float64Array.from(columns[name]);
  return { head, columns };
}

/** What a text of base64 over gzip stands for. */
async function gunzip(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** The sums of differences, from a first number on. */
function cumulated(gaps, first) {
  const sums = new Float64Array(gaps.length);
  let sum = first;
  for (let i = 0; i < gaps.length; i++) sums[i] = sum += gaps[i];
  return sums;
}

/** The jobs that all schedules of a page share. Times count from the first submission. */
function jobsOf(head, columns) {
  const kinds = {};
  for (const [kind, names] of Object.entries(head.kinds)) kinds[kind] = { names, of: columns[kind] };
  return {
    n: columns.gap.length,
    submit: cumulated(columns.gap, 0),
    number: cumulated(columns.number_gap, head.first_number),
    size: columns.size,
    requested: columns.requested,
    kinds,
  };
}
