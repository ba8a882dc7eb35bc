// Numbers and times as they are written on the page.

const CLEARLY = 3; // usual errors: an error that is as large speaks for itself, as in alerts.py

// With so many figures, and without zeros at the end. No digit before the point is lost.
export function amount(value, figures = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(figures - 2).replace("e+", "e").replaceAll("-", "−");
  const digits = size ? Math.max(figures - 1 - Math.floor(Math.log10(size)), 0) : 0;
  return value.toFixed(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "").replace("-", "−");
}

// Numbers beside an axis, whose distance is `step`.
export function axisMarks(values, step) {
  const largest = Math.max(...values.map(Math.abs));
  if (largest >= 1e6 || largest < 1e-3) return values.map((value) => amount(value));
  let digits = 0;
  while (digits < 8 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits++; // 0.25 needs two
  return values.map((value) => value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "−"));
}

// As many decimals as can be seen when the axis is this long.
export function fixed(value, length) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (!(length > 1e-6) || Math.abs(value) >= 1e6) return amount(value);
  const digits = Math.min(Math.max(2 - Math.floor(Math.log10(length)), 0), 8);
  return value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "−");
}

export const whole = (value) => (Number.isFinite(value) ? value.toLocaleString("en-GB", { maximumFractionDigits: 0 }) : "–");

const two = (value) => String(value).padStart(2, "0");

export function span(seconds) {
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  if (seconds < 3600) return `${Number((seconds / 60).toPrecision(2))} min`;
  if (seconds < 86400) return `${Number((seconds / 3600).toPrecision(2))} h`;
  return `${Number((seconds / 86400).toPrecision(2))} d`;
}

export function uptime(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const days = Math.floor(seconds / 86400), rest = Math.floor(seconds % 86400);
  const time = `${Math.floor(rest / 3600)}:${two(Math.floor(rest / 60) % 60)}:${two(rest % 60)}`;
  return days ? `${days} d ${time}` : time;
}

// What a question is about.
export function questionWords({ horizon, discount, meaning }) {
  const samples = typeof discount === "number" && discount < 1 ? `${amount(1 / (1 - discount))} samples` : "";
  const length = horizon !== null ? span(horizon) : samples, kind = meaning === "mean" ? "mean" : "sum";
  return length ? `${kind} over the coming ${length}` : typeof discount === "string" ? `${kind}, discounted by ${discount}` : kind;
}

// The error of a question and those of the two naive forecasts, overall or over the recent past. NaN is not known.
export function errorsOf(scores, number, recent = false) {
  const of = (name) => scores?.[recent ? `recent${name[0].toUpperCase()}${name.slice(1)}` : name][number] ?? NaN;
  const [error, hold, mean] = ["error", "hold", "mean"].map(of);
  return { error, hold, mean, skill: 1 - error / Math.min(hold, mean) }; // NaN if one of them is not known
}

export const percent = (share) => `${whole(100 * Math.abs(share))} %`;

const verdict = (skill) => (Math.abs(skill) < 0.005 ? "as good" : `${percent(skill)} ${skill > 0 ? "better" : "worse"}`);

// How good the forecast is: its error, beside those of two forecasts that need no learning.
export function skillWords({ error, hold, mean }) {
  if (!Number.isFinite(error)) return "";
  const against = [["newest value", hold], ["mean so far", mean]].filter(([, other]) => other > 0).map(([name, other]) => {
    const told = verdict(1 - error / other);
    return `${told} ${told === "as good" ? "as" : "than"} the ${name} (${amount(other)})`;
  });
  return [`error ${amount(error)}`, against.join(", ")].filter(Boolean).join(": ");
}

// The same over the recent past, in short: against the better of the two.
export function latelyWords({ error, skill }) {
  if (!Number.isFinite(error)) return "";
  return `lately: error ${amount(error)}${Number.isFinite(skill) ? `, ${verdict(skill)}` : ""}`;
}

// What an alert is about, as the terminal tells it: the value, what was expected, the reason, and by how much the error is unusual.
export function alertWords({ value, expected, reason, error, usual_error: usual }) {
  const times = usual > 0 && Number.isFinite(error) ? Math.abs(error) / usual : 0;
  const why = [reason, times >= CLEARLY && `${amount(times)} times the usual error`].filter(Boolean).join(", ");
  return [`${amount(value, 4)}, expected ${amount(expected, 4)}`, why].filter(Boolean).join(": ");
}

// When there will be a score: a return counts as known when all but a hundredth of its weight, e^−4.6, has come.
export const firstScore = (question) => (question.horizon === null ? "" : `known after about ${span(4.6 * question.horizon)}`);

const ENOUGH = 100; // horizons after which scores say something

// Whether so few samples are scored that nothing should be read into it. `step` is the usual time between two samples.
export function isEarly({ horizon, discount }, scored, step) {
  const samples = horizon !== null ? horizon / step : typeof discount === "number" && discount < 1 ? 1 / (1 - discount) : 0;
  return scored < ENOUGH * samples;
}

// A share by which forecasts are better, for a table: its words, and the class of the cell.
export function skillCell(skill, early) {
  if (early || !Number.isFinite(skill)) return early ? ["early", "soft"] : ["–", ""];
  return [`${skill < -0.005 ? "−" : ""}${percent(skill)}`, skill >= 0.005 ? "good" : skill <= -0.005 ? "bad" : ""];
}

export const EARLY = `too early to compare: fewer than ${ENOUGH} horizons are scored`;

export function median(values) {
  if (!values.length) return NaN;
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
