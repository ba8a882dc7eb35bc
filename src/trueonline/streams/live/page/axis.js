// The time axis: where its marks are, and what is written there. `clock` says whether times are dates, and of which zone.

const MINUTE = 60, HOUR = 3600, DAY = 86400, MONTH = 30.4 * DAY, YEAR = 365.25 * DAY;
const MONDAY = 4 * DAY; // the first one after the beginning of 1970
const DATES = 1e8; // times above are seconds since 1970, times below since the beginning
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

// Seconds between two marks: what reads well.
export const STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE,
  30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, MONTH, 3 * MONTH, 6 * MONTH, YEAR, 2 * YEAR,
  5 * YEAR, 10 * YEAR, 50 * YEAR, 100 * YEAR,
];

const two = (value) => String(value).padStart(2, "0");
const dateOf = (time, clock) => new Date(1000 * (time + clock.shift));

// Times that are dates are shown as the clock of the input showed them. Numbers have no zone: they are shown in the reader's.
export function clockOf(time, offset) {
  const dates = time > DATES;
  return { dates, shift: !dates ? 0 : offset ?? -60 * new Date(1000 * time).getTimezoneOffset() };
}

// Whose clock it is. `zone` is what the input wrote: "Z", "+02:00", "" for none; undefined for numbers.
export function zoneWords(clock, zone) {
  if (!clock.dates) return "times: minutes:seconds since the beginning";
  if (zone === "") return "times as in the input, without a zone";
  const minutes = Math.round(clock.shift / 60), size = Math.abs(minutes);
  return `times: UTC${minutes ? `${minutes < 0 ? "−" : "+"}${Math.floor(size / 60)}${size % 60 ? `:${two(size % 60)}` : ""}` : ""}`;
}

// Where the marks are: whole multiples of the step by the clock, Mondays, or the first days of months.
export function marks(from, to, step, clock) {
  const found = [];
  if (clock.dates && step >= MONTH) {
    const months = Math.round(step / MONTH), begin = dateOf(from, clock);
    let month = Math.floor((12 * begin.getUTCFullYear() + begin.getUTCMonth()) / months) * months;
    for (;; month += months) {
      const time = Date.UTC(Math.floor(month / 12), month % 12, 1) / 1000 - clock.shift;
      if (time > to) return found;
      if (time >= from) found.push(time);
    }
  }
  const origin = (clock.dates && step >= 7 * DAY ? MONDAY : 0) - clock.shift;
  for (let k = Math.ceil((from - origin) / step); origin + k * step <= to; k++) found.push(origin + k * step);
  return found;
}

// What is written at each mark. The day, or the year, is on a second line of the first mark and wherever it changes.
export function labels(times, step, clock) {
  if (!clock.dates) return times.map((time) => counted(time, step));
  let before = "";
  return times.map((time) => {
    const date = dateOf(time, clock), year = String(date.getUTCFullYear()), day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
    const [upper, lower] = step >= YEAR ? [year, ""] : step >= MONTH ? [MONTHS[date.getUTCMonth()], year]
      : step >= DAY ? [day, year] : [timeOfDay(date, step), before ? day : `${day} ${year}`];
    const changed = step >= DAY ? lower : day + year;
    const words = changed === before ? upper : `${upper}\n${lower}`;
    before = changed;
    return words;
  });
}

function timeOfDay(date, step) {
  const minutes = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
  return step >= MINUTE ? minutes : `${minutes}:${two(date.getUTCSeconds())}${fraction(date.getUTCMilliseconds(), step)}`;
}

const fraction = (ms, step) => (step >= 1 ? "" : `.${String(ms).padStart(3, "0").slice(0, step >= 0.1 ? 1 : 3)}`);

// A time since the beginning: minutes and seconds, with hours where there are any.
function counted(time, step) {
  const ms = Math.round(1000 * Math.abs(time)), seconds = Math.floor(ms / 1000), sign = time < 0 && ms ? "−" : "";
  const rest = `${two(seconds % 60)}${fraction(ms % 1000, step)}`, minutes = Math.floor(seconds / 60);
  return sign + (minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${rest}`);
}

// One moment in full, as exact as samples that are `step` seconds apart need it.
export function moment(time, step, clock) {
  if (!clock.dates) return counted(time, step);
  const date = dateOf(time, clock);
  const day = `${DAYS[date.getUTCDay()]} ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
  return step >= DAY && date % (1000 * DAY) === 0 ? day : `${day}, ${timeOfDay(date, step)}`;
}
