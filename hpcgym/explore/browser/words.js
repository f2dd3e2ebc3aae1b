// Numbers and times as people read them.

const MINUTE = 60, HOUR = 3600, DAY = 86400;
const UNITS = [[1, "s"], [MINUTE, "min"], [HOUR, "h"], [DAY, "d"]];

/** Seconds in the two largest units, rounded to the smaller, such as 3 d 1 h: duration of units.py. */
function span(seconds) {
  const size = Math.abs(seconds);
  let rounded = Math.floor(size + 0.5), text = `${rounded} s`;
  for (let i = 1; i < UNITS.length && rounded >= UNITS[i][0]; i++) {
    const [smaller, smallerName] = UNITS[i - 1], [larger, name] = UNITS[i];
    rounded = Math.floor(size / smaller + 0.5) * smaller;
    const rest = (rounded % larger) / smaller;
    text = `${Math.floor(rounded / larger)} ${name}${rest ? ` ${rest} ${smallerName}` : ""}`;
  }
  return seconds < 0 && text !== "0 s" ? `-${text}` : text;
}

const counted = (number) => number.toLocaleString("en");
const plural = (number, what) => `${counted(number)} ${what}${number === 1 ? "" : "s"}`;
const digits = (number) => String(Math.floor(number)).padStart(2, "0");

/** What tells when a time is, [s] since the first submission: a date, or days of the log's clock. */
function clockOf({ epoch, zone, first }) {
  let format = null;
  if (epoch !== null) {
    const parts = { dateStyle: "short", timeStyle: "medium", hourCycle: "h23" };
    try {
      format = new Intl.DateTimeFormat("sv", { ...parts, timeZone: zone });
    } catch {  // a zone that this browser does not know
      format = new Intl.DateTimeFormat("sv", { ...parts, timeZone: "UTC" });
    }
  }
  const dated = (time) => format.format((epoch + first + time) * 1000);
  const counting = (time) => {
    const of = ((first + time) % DAY + DAY) % DAY;
    const day = `day ${Math.floor((first + time) / DAY)}`;
    return `${day}, ${digits(of / HOUR)}:${digits((of % HOUR) / MINUTE)}:${digits(of % MINUTE)}`;
  };
  const full = format ? dated : counting;
  return {
    seconds: full,
    minutes: (time) => full(time).slice(0, -3),
    day: (time) => full(time).split(format ? " " : ",")[0],
    // of the log's clock, from which ticks are counted; in a zone days begin by its hour
    dated: format !== null,
    origin: first + (epoch || 0) + (format ? offsetOf(dated, epoch + first) : 0),
  };
}

/** How far a zone is ahead of UTC [s] at a time [s] since 1970. */
function offsetOf(dated, time) {
  return Date.parse(`${dated(0).replace(" ", "T")}Z`) / 1000 - Math.floor(time);
}
