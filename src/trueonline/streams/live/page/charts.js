// One chart a question: the signal, its prediction with its band, what came of it, and alerts.

import { labels, marks, moment, STEPS } from "./axis.js";
import { realised, realisedOfBuckets } from "./realised.js";
import { alertWords, axisMarks, fixed, questionWords } from "./words.js";

const COMPLETE = 0.01; // what came is known when this little of its weight is still to come …
const SO_FAR = 0.6; // … and is shown as it is so far when this much is
const LINES = ["times", "signal", "realised", "soFar", "prediction", "low", "high", "least", "most"]; // the rows of the data
const NEAR = 7; // pixels between the cursor and an alert that it points at
const nothing = () => LINES.map(() => []);

export class Chart {
  // `number` is that of the question. `pick(from, to)` is called when a stretch of time is chosen, `reset()` to go back.
  constructor(number, question, signalNumbers, { pick, reset }) {
    Object.assign(this, { number, question, pick, reset });
    this.target = signalNumbers.get(question.target);
    this.gamma = signalNumbers.get(question.discount); // where γ is a signal
    this.raw = question.meaning === "return"; // a sum, which has an axis of its own
    this.range = [0, 1];
    this.clock = { dates: false, shift: 0 };
    this.alerts = [];
    this.source = null; // the samples drawn
    this.data = nothing();
    this.element = document.createElement("article");
    this.element.className = "chart";
    this.element.innerHTML = '<div class="head"><h2></h2><span class="horizon"></span><span class="values"></span></div>'
      + '<div class="scores"><span class="score"></span><span class="lately"></span></div><div class="plot" role="img"></div>';
    const [heading, horizon, values] = this.element.firstChild.children;
    heading.textContent = question.name;
    horizon.textContent = questionWords(question);
    [this.score, this.lately] = this.element.children[1].children;
    this.values = Object.entries({ when: "", signal: "signal", prediction: "prediction", band: "band", realised: "came" }).map(([name, label]) => {
      const span = document.createElement("span");
      span.className = name;
      if (label) span.dataset.label = label;
      values.append(span);
      return span;
    });
    this.plot = this.element.lastChild;
    this.plot.setAttribute("aria-label", `${question.name}: the signal, its prediction with its band, and what came`);
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
  }

  // Make the plot, with the colours and the size of now.
  build({ width, height, rightAxis, colours }) {
    this.uplot?.destroy();
    Object.assign(this, { rightAxis });
    const steady = this.steady = [steadyRange(), steadyRange()];
    const axis = { stroke: colours.soft, font: "11px system-ui, sans-serif", grid: { stroke: colours.grid, width: 1 }, ticks: { show: false } };
    const numbers = { ...axis, size: width < 400 ? 46 : 58, gap: 4, values: (_, ticks, __, ___, step) => axisMarks(ticks, step) };
    // Pixels between two marks of time: less on a phone, where few have room, but not where they have decimals.
    const apart = (_, __, from, to, wide) => (wide >= 400 || to - from <= 8 ? 70 : this.clock.dates ? 50 : 40);
    const scale = this.raw ? "sum" : "y";
    const line = (stroke, width, more = {}) => ({ scale, stroke, width, points: { show: false }, spanGaps: false, ...more });
    const edge = (more = {}) => line("transparent", 0, more);
    const options = {
      width, height, padding: [6, rightAxis ? 0 : 4, 0, 0], legend: { show: false },
      scales: {
        x: { time: false, range: () => this.range },
        y: { range: steady[0] },
        ...(this.raw ? { sum: { range: steady[1] } } : {}),
      },
      axes: [
        { ...axis, size: (_, words) => (words?.some((each) => each.includes("\n")) ? 36 : 24), space: apart, incrs: STEPS, splits: (_, __, from, to, step) => marks(from, to, step, this.clock),
          values: (u, ticks, _, __, step) => this.times(u, ticks, step) },
        { ...numbers, label: this.question.target, labelSize: 18, labelGap: 0, labelFont: axis.font },
        ...(rightAxis ? [{ ...numbers, scale, stroke: colours.prediction, side: 1, size: 46, grid: { show: false }, values: this.raw ? numbers.values : () => [] }] : []),
      ],
      series: [
        {},
        line(colours.signal, 1, { scale: "y" }),
        line(colours.realised, 3.5),
        line(colours.realised, 1.5, { dash: [3, 4] }),
        line(colours.prediction, 1.75),
        edge(), edge(), edge({ scale: "y" }), edge({ scale: "y" }),
      ],
      bands: [
        { series: [LINES.indexOf("most"), LINES.indexOf("least")], fill: colours.spread },
        { series: [LINES.indexOf("high"), LINES.indexOf("low")], fill: colours.band },
      ],
      cursor: {
        sync: { key: "time", scales: ["x", null] }, points: { size: 6 }, y: false,
        drag: { x: true, y: false, setScale: false, dist: 6 },
        bind: { dblclick: () => () => this.reset() },
      },
      hooks: {
        setSelect: [(u) => {
          if (u.select.width < 6) return;
          this.pick(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
        setCursor: [() => this.tell()],
        drawClear: [(u) => this.markBeginnings(u, colours.mark)],
        draw: [(u) => this.markAlerts(u, colours.bad)],
      },
    };
    this.uplot = new uPlot(options, this.data, this.plot);
    this.uplot.over.append(this.tip);
    this.touch();
  }

  // One finger does what the mouse does: it chooses a stretch of time, or points. Up and down still scrolls.
  touch() {
    const over = this.uplot.over;
    let begin = null;
    const at = (event) => Math.min(Math.max(event.touches[0].clientX - over.getBoundingClientRect().left, 0), over.clientWidth);
    over.addEventListener("touchstart", (event) => { begin = event.touches.length === 1 ? at(event) : null; }, { passive: true });
    over.addEventListener("touchmove", (event) => {
      if (begin === null) return;
      const x = at(event);
      this.uplot.setCursor({ left: x, top: 0 });
      this.uplot.setSelect({ left: Math.min(x, begin), width: Math.abs(x - begin), top: 0, height: over.clientHeight }, false);
    }, { passive: true });
    over.addEventListener("touchend", () => {
      const { left, width } = this.uplot.select;
      if (begin !== null && width > 20) this.uplot.setSelect({ left, width, top: 0, height: over.clientHeight }, true);
      else this.uplot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      begin = null;
    });
  }

  resize(width, height) {
    if (this.uplot && (this.uplot.width !== width || this.uplot.height !== height)) this.uplot.setSize({ width, height });
  }

  has(samples) { return samples.ofPrediction.has(this.number); }

  // `step` is the usual time between two samples, and `alerts` are all that are known. `key` is another one when something else is
  // looked at.
  draw({ range, following, key, clock, step, alerts }) {
    if (key !== this.key) for (const each of this.steady) each.forget();
    Object.assign(this, { range, following, key, clock, step });
    const own = ({ time, target }) => target === this.question.target && time >= range[0] && time <= range[1];
    this.alerts = alerts.filter(own);
    this.data = this.source ? this.view(this.source, range) : nothing();
    // Where samples are closer than pixels, the signal shows through the prediction.
    this.uplot.series[LINES.indexOf("prediction")].alpha = this.data[0].length > this.uplot.over.clientWidth ? 0.6 : 1;
    this.uplot.setData(this.data);
    this.tell();
  }

  // What is to be drawn: samples, or buckets where the samples do not reach back far enough. There is a gap wherever the stream
  // begins anew.
  view(samples, [from, to]) {
    const rows = nothing(), [x, ...lines] = rows;
    const push = (time, ...values) => {
      x.push(time);
      lines.forEach((line, k) => line.push(Number.isFinite(values[k]) ? values[k] : null));
    };
    const oldest = Math.max(samples.length - samples.kept, 0), { history } = samples;
    const coarse = history.length > 0 && from < samples.oldest() && history.begins[0] < samples.oldest();
    const first = Math.max(coarse ? Math.min(samples.length - (samples.end - history.end), samples.length - 1) : samples.find(from) - 1, oldest);
    const signal = samples.columns[samples.ofSignal.get(this.target)], at = samples.ofPrediction.get(this.number);
    const [prediction, low, high] = [0, 1, 2].map((k) => samples.columns[at + k * samples.questions]);
    const discount = this.gamma === undefined ? this.question.discount : samples.columns[samples.ofSignal.get(this.gamma)];
    const came = realised(this.question, samples, signal, discount, first);
    if (coarse) this.buckets(samples, from, to, came, first, push);
    this.begins = [];
    const end = Math.min(samples.find(to) + 1, samples.length);
    const last = samples.starts.lastIndexOf(1, samples.length - 1); // what was cut off before it will never be known
    for (let i = first; i < end; i++) {
      if (samples.starts[i] && (i > first || x.length)) {
        this.begins.push(samples.times[i]);
        push(((x.at(-1) ?? samples.times[i]) + samples.times[i]) / 2);
      }
      const j = i - first, known = came.left[j] <= COMPLETE;
      const joins = j + 1 < came.left.length && came.left[j + 1] > COMPLETE; // so that the two lines meet
      const told = this.gamma === undefined && i >= last && came.left[j] <= SO_FAR && (!known || joins);
      // So far, it is taken to go on as what has come.
      const soFar = told ? came.G[j] / (1 - came.left[j]) : NaN;
      push(samples.times[i], signal[i], known ? came.G[j] : NaN, soFar, prediction[i], low[i], high[i]);
    }
    return rows;
  }

  // Buckets instead of samples: means, with the lowest and highest values of the signal. `came` is that of the samples after them.
  buckets(samples, from, to, came, first, push) {
    const { history } = samples, target = samples.ofSignal.get(this.target), at = samples.ofPrediction.get(this.number);
    let b = history.begins.findIndex((_, k) => history.ends[k] >= from);
    if (b < 0) return;
    b = Math.max(b - 1, 0);
    const signal = history.columns[target];
    const [prediction, low, high] = [0, 1, 2].map((k) => history.columns[at + k * samples.questions]);
    const after = first < samples.length ? samples.times[first] : history.ends[history.length - 1];
    const { G, left } = realisedOfBuckets(this.question, history, signal, b, after, came.G[0] ?? 0, came.left[0] ?? 1);
    for (let j = 0; b + j < history.length && history.begins[b + j] <= to; j++) {
      const k = b + j;
      if (history.gapBefore(k)) push((history.ends[k - 1] + history.begins[k]) / 2);
      const time = (history.begins[k] + history.ends[k]) / 2;
      push(time, signal[k], left[j] <= COMPLETE ? G[j] : NaN, NaN, prediction[k], low[k], high[k], history.lows[target][k], history.highs[target][k]);
    }
  }

  // What is written at marks of the time axis, unless it would not fit at the right end. Beside an axis it does.
  times(u, ticks, step) {
    const [from, to] = this.range, room = this.rightAxis ? -1 : (30 * (to - from) * devicePixelRatio) / u.bbox.width;
    const words = labels(ticks, step, this.clock);
    this.marks = ticks.map((tick, k) => [tick, to - tick > room ? words[k] : ""]);
    return this.marks.map(([, label]) => label);
  }

  // Where the stream began anew: dotted.
  markBeginnings(u, colour) {
    if (!this.begins?.length || this.begins.length > 40) return;
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = colour;
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    for (const time of this.begins) {
      const at = u.valToPos(time, "x", true);
      if (at < bbox.left || at > bbox.left + bbox.width) continue;
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
    }
    ctx.stroke();
    ctx.restore();
  }

  // Alerts: a triangle on the time axis, and a thin line.
  markAlerts(u, colour) {
    const { ctx, bbox } = u, size = 5 * devicePixelRatio, foot = bbox.top + bbox.height;
    ctx.save();
    ctx.fillStyle = ctx.strokeStyle = colour;
    for (const { time } of this.alerts) {
      const at = u.valToPos(time, "x", true);
      ctx.globalAlpha = 0.35;
      ctx.fillRect(at - devicePixelRatio / 2, bbox.top, devicePixelRatio, bbox.height);
      ctx.globalAlpha = 1;
      ctx.beginPath();
      ctx.moveTo(at, foot - 1.6 * size);
      ctx.lineTo(at - size, foot);
      ctx.lineTo(at + size, foot);
      ctx.fill();
    }
    ctx.restore();
  }

  // The values under the cursor, or the newest, and the alerts that it points at.
  tell() {
    if (!this.uplot) return;
    const [x, signal, came, , prediction, low, high] = this.data, scale = this.raw ? "sum" : "y";
    const { left, idx } = this.uplot.cursor;
    const pointed = left >= 0 && idx !== null && idx < x.length;
    const at = pointed ? idx : x.length - 1;
    const [when, ...values] = this.values, told = (line, on) => {
      const { min, max } = this.uplot.scales[on];
      return fixed(line[at], max - min);
    };
    if (!x.length) when.textContent = "";
    else when.textContent = this.following && !pointed ? "newest" : moment(x[at], this.step, this.clock);
    const known = (line) => Number.isFinite(line[at] ?? NaN);
    const band = known(low) && known(high) ? `${told(low, scale)} to ${told(high, scale)}` : "";
    [told(signal, "y"), told(prediction, scale), band, known(came) ? told(came, scale) : ""].forEach((words, k) => { values[k].textContent = words; });
    const near = left < 0 ? [] : this.alerts.filter(({ time }) => Math.abs(this.uplot.valToPos(time, "x") - left) < NEAR).slice(-3);
    this.tip.hidden = !near.length;
    this.tip.textContent = near.map((alert) => `${moment(alert.time, this.step, this.clock)}\n${alert.question}: ${alertWords(alert)}`).join("\n");
    this.tip.classList.toggle("left", left > this.uplot.over.clientWidth / 2);
    if (near.length) this.tip.style.left = `${this.uplot.valToPos(near[0].time, "x")}px`;
  }

  // The lines by name, for tests.
  get lines() { return Object.fromEntries(LINES.map((name, k) => [name, this.data[k]])); }
}

// A range that grows at once but shrinks only when much of it is empty: the lines should move, not the axis.
function steadyRange() {
  let kept = null;
  const range = (_, low, high) => {
    if (low === null || high === null || !Number.isFinite(low + high)) return kept ?? [0, 1];
    const room = Math.max((high - low) * 0.08, Math.abs(high) * 1e-3, 1e-9);
    const fits = kept && kept[0] <= low && high <= kept[1] && (high - low + 2 * room) > 0.85 * (kept[1] - kept[0]);
    if (!fits) kept = [low - room, high + room];
    return kept;
  };
  return Object.assign(range, { forget: () => { kept = null; } });
}
