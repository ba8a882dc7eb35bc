// Numbers and times as they are written on the page.

export function amount(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(1).replace("e+", "e").replace("-", "−");
  const digits = size ? Math.max(2 - Math.floor(Math.log10(size)), 0) : 0; // three figures, without zeros at the end
  return value.toFixed(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "").replace("-", "−");
}

// Numbers beside an axis, whose distance is `step`.
export function axisMarks(values, step) {
  const largest = Math.max(...values.map(Math.abs));
  if (largest >= 1e6 || largest < 1e-3) return values.map(amount);
  const digits = Math.min(Math.max(-Math.floor(Math.log10(step) + 1e-9), 0), 8);
  return values.map((value) => value.toFixed(Number.isInteger(value) ? 0 : digits).replace("-", "−"));
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

export function horizonLabel(question) {
  if (question.horizon !== null) return span(question.horizon);
  return typeof question.discount === "string" ? `until ${question.discount}` : "";
}

// The error of a question and those of the two naive forecasts, overall or over the recent past. NaN is not known.
export function errorsOf(scores, number, recent = false) {
  const of = (name) => scores?.[recent ? `recent${name[0].toUpperCase()}${name.slice(1)}` : name][number] ?? NaN;
  const [error, hold, mean] = ["error", "hold", "mean"].map(of);
  return { error, hold, mean, skill: 1 - error / Math.min(hold, mean) }; // NaN if one of them is not known
}

export const percent = (share) => `${whole(100 * Math.abs(share))} %`;

// How good the forecast is, in words: its error, and that of the newest value and of the mean so far.
export function skillWords({ error, hold, mean, skill }) {
  const known = [["error", error], ["newest value", hold], ["mean so far", mean]].filter(([, value]) => Number.isFinite(value));
  const words = known.map(([name, value]) => `${name} ${amount(value)}`).join(", ");
  if (!Number.isFinite(skill)) return words;
  const verdict = Math.abs(skill) < 0.005 ? "as good as" : `${percent(skill)} ${skill > 0 ? "better" : "worse"} than`;
  return `${words}: ${verdict} the better of them`;
}

// What an alert is about: the value, against what was expected.
export function alertWords({ value, expected, usual_error: usual }) {
  const around = Number.isFinite(usual) ? ` ± ${amount(usual)}` : "";
  return `${amount(value)}, expected ${amount(expected)}${around}`;
}

// When there will be a score: a return counts as known when all but a millionth of its weight, e^−13.8, has come.
export const firstScore = (question) => (question.horizon === null ? "" : `known after about ${span(14 * question.horizon)}`);

export function median(values) {
  if (!values.length) return NaN;
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
