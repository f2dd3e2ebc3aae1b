// Steps of time: seconds to hours, and days, weeks from Monday, months and years of the log's clock.

const WEEK = 7 * DAY;
const STEPS = [
  ...[1, 5, 15, 60, 300, 900, 1800, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, WEEK, 2 * WEEK].map((seconds) => ({ seconds })),
  ...[1, 3, 6, 12, 24, 60, 120].map((months) => ({ months, seconds: months * 30 * DAY })),
];

const PERIODS = STEPS.filter(({ months, seconds }) => [HOUR, 6 * HOUR, DAY, WEEK].includes(seconds) || [1, 3, 12].includes(months));

/** The first step of at least some seconds. */
const stepOf = (least, steps = STEPS) => steps.find(({ seconds }) => seconds >= least) || steps.at(-1);

/** Where steps begin, from the last at or before t0 up to the first after t1 [s since the first submission]. */
function edgesOf(clock, { months, seconds }, t0, t1) {
  const { origin, dated } = clock, edges = [];
  let at;
  if (months && dated) {
    const date = new Date((t0 + origin) * 1000), month = 12 * date.getUTCFullYear() + date.getUTCMonth();
    const first = month - (month % months);
    at = (i) => Date.UTC(Math.floor((first + i * months) / 12), (first + i * months) % 12) / 1000;
  } else {
    const monday = dated && seconds % WEEK === 0 ? 4 * DAY : 0;  // 1970 began on a Thursday
    const first = Math.floor((t0 + origin - monday) / seconds);
    at = (i) => (first + i) * seconds + monday;
  }
  for (let i = 0; !edges.length || edges.at(-1) <= t1; i++) edges.push(at(i) - origin);
  return edges;
}

/** When a step begins, in as many words as the step needs. */
function stepText(clock, { months, seconds }, time) {
  if (seconds < MINUTE) return clock.seconds(time);
  if (seconds < DAY) return clock.minutes(time);
  const day = clock.day(time + 12 * HOUR);  // at noon: an hour of summer time does not change the day
  return months && clock.dated ? day.slice(0, months < 12 ? 7 : 4) : day;
}

/** What a step is called. */
function stepName(clock, { months, seconds }) {
  if (months && clock.dated) return months === 1 ? "month" : `${months} months`;
  return seconds === WEEK ? "week" : seconds === DAY ? "day" : seconds === HOUR ? "hour" : span(seconds);
}

/** Round numbers above 0 up to a greatest one, three at most; of seconds whole hours, days and so on. */
function roundLevels(top, areSeconds = false) {
  const power = 10 ** Math.floor(Math.log10(top / 3));
  const step = areSeconds ? stepOf(top / 3.5).seconds : [1, 2, 5, 10].map((x) => x * power).find((x) => 3.5 * x >= top);
  return Array.from({ length: Math.floor(top / step) }, (_, i) => (i + 1) * step);
}
