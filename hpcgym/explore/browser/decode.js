// What Python has packed (hpcgym/explore/page.py): a header and columns of numbers.

const KINDS = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f8: Float64Array };
const aligned = (bytes) => Math.ceil(bytes / 8) * 8;

/** Header and columns, name -> array, of an ArrayBuffer. */
function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const columns = {};
  let offset = aligned(4 + length);
  for (const [name, kind, count] of head.columns) {
    columns[name] = new KINDS[kind](buffer, offset, count);
    offset += aligned(columns[name].byteLength);
  }
  return { head, columns };
}

/** The bytes that a text of base64 over gzip stands for, an ArrayBuffer. */
async function gunzip(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
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
