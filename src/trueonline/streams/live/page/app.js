// The page of `trueonline live`: what it was told, what it shows, and the controls.

import { clockOf, zoneWords } from "./axis.js";
import { Chart } from "./charts.js";
import { tellFigures, write } from "./figures.js";
import { bindKeys } from "./keys.js";
import { Alerts, tellExperts } from "./panels.js";
import { Samples } from "./samples.js";
import { ALL, lengths, Spans } from "./spans.js";
import { remember, remembered } from "./memory.js";
import { Table } from "./table.js";
import { amount, EARLY, errorsOf, firstScore, isEarly, latelyWords, median, skillWords } from "./words.js";
import { Connection } from "./wire.js";

const $ = (id) => document.getElementById(id);
const DELAYS = 400; // the delay is the median of so many samples
const MEASURED = 100; // samples after which the speed of the stream is known well enough

let hello = null;
let signalNumbers = new Map();
let samples = null, coming = null; // at hand, and subscribed to but not begun
let status = {}, scores = null, experts = {};
let charts = [];
let shown = []; // numbers of questions
let step = NaN; // the usual time between two samples, in seconds
let zoom = null; // [from, to], or null to follow
let wholeFrom = NaN; // all samples of the zoomed stretch are at hand from this time on, if they were when it was chosen
let frozenAt = null; // paused: the number of the first sample not to draw
let missed = 0, drawnTo = 0, liveSince = Infinity, clockOffset = 0, quickest = Infinity;
let delays = [];
let stopped = false; // whether the connection ended in good order
let lostFor = null; // seconds until the next trial, when there is no connection

// --- What comes ------------------------------------------------------------------------------------

const receive = {
  hello(message) {
    hello = message;
    lostFor = null;
    stopped = false;
    missed = 0;
    signalNumbers = new Map(hello.signals.map((name, number) => [name, number]));
    document.title = hello.title ? `${hello.title} – trueonline` : "trueonline";
    $("title").textContent = $("title").title = hello.title || "trueonline";
    const wanted = remembered("shown", []).map((name) => hello.questions.findIndex((each) => each.name === name));
    const known = wanted.filter((number) => number >= 0).slice(0, hello.most);
    table.fill(hello.questions, hello.most);
    alerts.clear();
    [step, experts, scores] = [NaN, {}, null];
    spans.offer([]);
    for (const chart of charts) remove(chart);
    charts = [];
    samples = coming = null;
    const differs = known.length && known.join() !== hello.shown.join();
    show(differs ? known : hello.shown, differs);
    askClock();
  },
  subscribed(message) {
    coming = { number: message.number, samples: new Samples(message.signals, message.questions, hello.kept), since: message.clock };
  },
  samples(frame) {
    if (frame.anew) {
      if (frame.subscription !== coming?.number) return;
      samples = coming.samples;
      if (liveSince === Infinity) liveSince = coming.since; // what is older has no delay to speak of
      drawnTo = Math.max(drawnTo > frame.first + frame.length ? 0 : drawnTo, frame.first);
    }
    const forgot = samples.append(frame);
    if (forgot && zoom && frozenAt === null && !frame.anew) reset(); // the stretch that was looked at is gone
    missed += frame.missed;
    measureStep();
    for (const chart of charts) {
      if (frozenAt === null) chart.source = chart.has(samples) ? samples : null;
      else if (!chart.source && chart.has(samples)) chart.source = samples.until(frozenAt);
    }
    schedule();
  },
  history(frame) {
    if (frame.subscription !== coming?.number) return;
    coming.samples.history = coming.samples.history.with(frame);
    schedule();
  },
  status(message) {
    const changed = message.state !== status.state;
    status = message;
    if (changed) for (const chart of charts) tellScore(chart);
    schedule();
  },
  scores(message) {
    scores = message;
    table.update(scores, step);
    for (const chart of charts) tellScore(chart);
  },
  alerts(message) {
    alerts.add(message.alerts);
    schedule();
  },
  experts(message) {
    experts = message.experts;
    showExperts();
  },
  clock({ yours, mine }) {
    const now = Date.now() / 1000, took = now - yours;
    if (took < quickest) [quickest, clockOffset] = [took, mine - (now + yours) / 2];
  },
};

const alerts = new Alerts($("alerts"), $("alert-list"), lookAt);
const spans = new Spans($("windows"), reset);
const table = new Table($("list"), $("find"), $("more"), toggle);
const signal = new URLSearchParams(location.search).get("signal"); // of a fleet
// The token is in the cookie now, and need not be in the address.
history.replaceState(null, "", signal === null ? location.pathname : `?signal=${encodeURIComponent(signal)}`);
$("back").hidden = signal === null;
const connection = new Connection((message) => receive[message.kind]?.(message), signal, (wait, orderly) => {
  lostFor = wait;
  stopped ||= orderly;
  liveSince = Infinity;
  schedule();
});

// On another machine the clock differs. On this one it does not.
function askClock() {
  if (["127.0.0.1", "localhost", "[::1]"].includes(location.hostname)) return;
  for (let trial = 0; trial < 5; trial++) setTimeout(() => connection.send({ clock: Date.now() / 1000 }), 200 * trial);
}

// --- Which questions are shown ---------------------------------------------------------------------

function toggle(number) {
  show(shown.includes(number) ? shown.filter((each) => each !== number) : [...shown, number].sort((a, b) => a - b));
  remember("shown", shown.map((each) => hello.questions[each].name));
}

function show(numbers, ask = true) {
  shown = numbers;
  if (ask) connection.send({ subscribe: shown });
  for (const chart of charts) if (!shown.includes(chart.number)) remove(chart);
  const known = new Map(charts.filter((chart) => shown.includes(chart.number)).map((chart) => [chart.number, chart]));
  charts = shown.map((number) => known.get(number) ?? new Chart(number, hello.questions[number], signalNumbers, { pick, reset }));
  $("charts").replaceChildren(...charts.map((chart) => chart.element));
  for (const chart of charts) tellScore(chart);
  table.mark(shown);
  showExperts();
  build();
}

const showExperts = () => tellExperts($("experts"), $("expert-list"), hello.questions, shown, experts);

function remove(chart) {
  chart.uplot?.destroy();
  chart.element.remove();
}

function tellScore(chart) {
  const recent = errorsOf(scores, chart.number, true);
  const early = isEarly(chart.question, scores?.scored[chart.number] ?? 0, step);
  const [known, last] = [errorsOf(scores, chart.number), latelyWords(recent)];
  const overall = early && Number.isFinite(known.error) ? `error ${amount(known.error)}: ${EARLY}` : skillWords(known);
  const lately = early ? "" : last;
  const wait = overall || lately || status.state === "ended" ? "" : firstScore(chart.question);
  chart.score.textContent = wait ? `error: ${wait}` : overall;
  chart.lately.textContent = lately;
  chart.lately.title = skillWords(recent);
  chart.score.title = wait && "the error is shown once what was predicted has come, but for a hundredth";
}

// --- Drawing ---------------------------------------------------------------------------------------

let pending = false, earliest = 0;

function schedule() {
  if (pending) return;
  pending = true;
  const wait = earliest - performance.now();
  if (wait > 4) setTimeout(() => requestAnimationFrame(draw), wait);
  else requestAnimationFrame(draw);
}

function draw() {
  pending = false;
  const begun = performance.now();
  if (charts.some((chart) => chart.rightAxis !== needsRight())) build(false);
  const range = currentRange();
  if (frozenAt === null && zoom && samples?.oldest() > wholeFrom) pause(); // or only buckets would be left
  if (range) {
    const clock = clockOf(range[1], status.offset ?? hello.offset);
    const view = { range, following: !zoom, key: zoom?.join() ?? spans.length, clock, step, alerts: alerts.known };
    for (const chart of charts) if (frozenAt === null || chart.source) chart.draw(view);
    alerts.tell(step, clock);
    write("zone", zoneWords(clock, status.zone));
    $("band-line").hidden = !charts.some((chart) => chart.lines.high.some((value) => value !== null));
    $("alert-line").hidden = !alerts.known.length;
    measure();
  }
  tell();
  // Half of the time at most is spent on drawing: a slow machine draws less often.
  const took = performance.now() - begun;
  earliest = performance.now() + took;
}

function currentRange() {
  if (zoom) return zoom;
  const ends = charts.map((chart) => chart.source?.newest()).filter(Number.isFinite);
  if (!ends.length) return null;
  const end = Math.max(...ends);
  const begin = Math.min(...charts.map((chart) => chart.source?.earliest()).filter(Number.isFinite), end - (step || 1));
  return [spans.length === ALL ? begin : Math.max(begin, end - spans.length), end];
}

// How old the samples are that were drawn just now for the first time.
function measure() {
  if (frozenAt !== null || !samples) return;
  const now = Date.now() / 1000 + clockOffset;
  const from = Math.max(samples.length - (samples.end - drawnTo), 0);
  for (let i = from; i < samples.length; i++) {
    if (samples.received[i] >= liveSince) delays.push(1000 * (now - samples.received[i]));
  }
  delays = delays.slice(-DELAYS);
  drawnTo = samples.end;
}

const needsRight = () => charts.some((chart) => chart.raw);

function build(thenDraw = true) {
  const colours = Object.fromEntries(["signal", "prediction", "band", "spread", "realised", "soft", "grid", "mark", "bad"].map(
    (name) => [name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()]));
  const options = { ...size(), rightAxis: needsRight(), colours };
  for (const chart of charts) chart.build(options);
  if (thenDraw) schedule();
}

const narrow = matchMedia("(max-width: 800px)");

function size() {
  const width = Math.max($("charts").clientWidth - 2, 200);
  const top = $("charts").getBoundingClientRect().top + scrollY;
  const each = (innerHeight - top - 36) / Math.max(charts.length, 1) - 72;
  return { width, height: Math.round(narrow.matches ? (charts.length > 1 ? 190 : 260) : Math.min(Math.max(each, 150), 640)) };
}

function resize() {
  const { width, height } = size();
  for (const chart of charts) chart.resize(width, height);
  schedule();
}
new ResizeObserver(resize).observe($("charts"));
addEventListener("resize", resize);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => build());
document.addEventListener("visibilitychange", () => { liveSince = document.hidden ? Infinity : Date.now() / 1000 + clockOffset; });

// --- What is told in words -------------------------------------------------------------------------

let tellingAt = 0; // the figures change four times a second at most, or nobody could read them

function tell() {
  write("state", stateWords());
  $("state").dataset.state = stopped ? "ended" : lostFor !== null ? "lost" : frozenAt !== null ? "paused" : status.state ?? "waiting";
  const empty = emptyWords();
  $("empty").hidden = !empty;
  $("charts").hidden = !shown.length;
  write("empty", empty);
  if ($("note").textContent !== (status.note ?? "")) {
    write("note", status.note ?? "");
    $("note").hidden = !status.note;
    resize(); // there is less room for the charts, or more
  }
  if (!tellingAt) {
    tellingAt = setTimeout(() => {
      tellingAt = 0;
      tellFigures({ status, missed, delays, step, received: samples?.end });
    }, 250);
  }
}

function stateWords() {
  if (stopped) return "trueonline was stopped";
  if (lostFor !== null) return "connection lost – trying again";
  if (frozenAt !== null) return "paused – learning goes on";
  return { learning: "learning", ended: "the stream has ended", stopped: "stopped" }[status.state] ?? "waiting for samples";
}

function emptyWords() {
  if (!hello) return lostFor !== null ? "No connection. Is trueonline still running? Trying again." : "Connecting …";
  if (!shown.length) return "Nothing is shown. Tick a question in the list.";
  if (samples?.length || frozenAt !== null) return "";
  return status.state === "ended" ? "The stream has ended without a sample." : "Waiting for samples …";
}

// --- Controls --------------------------------------------------------------------------------------

function pause() {
  if (frozenAt !== null) {
    frozenAt = null;
    liveSince = Date.now() / 1000 + clockOffset;
    for (const chart of charts) chart.source = samples && chart.has(samples) ? samples : null;
  } else {
    frozenAt = samples?.end ?? 0;
    const still = samples?.until(frozenAt);
    for (const chart of charts) chart.source = still && chart.has(still) ? still : null;
  }
  $("pause").textContent = frozenAt === null ? "pause" : "resume";
  $("pause").setAttribute("aria-pressed", frozenAt !== null);
  schedule();
}

function pick(from, to) {
  zoom = [from, to];
  const begin = Math.max(from, samples?.earliest() ?? NaN);
  wholeFrom = samples?.oldest() <= begin ? begin : NaN;
  $("reset").hidden = false;
  spans.mark(!zoom);
  schedule();
}

function reset() {
  zoom = null;
  $("reset").hidden = true;
  spans.mark(!zoom);
  schedule();
}

// Make the stretch shown longer or shorter, or move it by a share of itself.
function zoomBy(factor, move = 0) {
  const range = currentRange();
  if (!range) return;
  const half = (range[1] - range[0]) / 2 * factor, middle = (range[0] + range[1]) / 2 + move * (range[1] - range[0]);
  pick(middle - half, middle + half);
}

// Show a moment, in the middle of as much time as is shown now.
function lookAt({ time, target }) {
  const range = currentRange();
  if (!range) return;
  const half = Math.min((range[1] - range[0]) / 2, 200 * (step || 1));
  pick(time - half, time + half);
  charts.find((chart) => chart.question.target === target)?.element.scrollIntoView({ block: "nearest" });
}

// Offer lengths that fit the speed of the stream, as soon as there are samples to measure it by.
function measureStep() {
  if (samples.end > MEASURED && Number.isFinite(step)) return;
  step = samples.step();
  if (Number.isFinite(step)) spans.offer(lengths(step, hello.kept));
}

const keys = {
  p: pause, " ": pause, 0: reset, Escape: reset, "+": () => zoomBy(0.5), "=": () => zoomBy(0.5), "-": () => zoomBy(2),
  ArrowLeft: () => zoomBy(1, -0.25), ArrowRight: () => zoomBy(1, 0.25), "/": () => $("find").focus(),
  "?": () => { $("help").open = !$("help").open; },
};
for (const k of [1, 2, 3, 4]) keys[k] = () => $("windows").children[k - 1]?.click();

bindKeys(keys);
$("pause").textContent = "pause";
$("pause").addEventListener("click", pause);
$("reset").addEventListener("click", reset);
document.addEventListener("click", (event) => { if (!event.target.closest("#dropping")) $("dropped-details").open = false; });

// --- For tests -------------------------------------------------------------------------------------

const chartOf = (name) => charts.find((chart) => chart.question.name === name);
window.trueonline = {
  delay: () => median(delays), // ms from the arrival of a sample to its drawing, median
  delays: () => [...delays],
  points: (name) => chartOf(name)?.data[1].filter((value) => value !== null).length ?? 0, // that are drawn
  series: (name) => chartOf(name)?.lines ?? {},
  alerts: (name) => chartOf(name)?.alerts, // that are marked
  uplot: (name) => chartOf(name)?.uplot,
  marks: (name) => chartOf(name)?.marks, // of the time axis: [time, words]
  shown: () => shown.map((number) => hello.questions[number].name),
  range: currentRange,
  get paused() { return frozenAt !== null; },
  get samples() { return samples?.end ?? 0; }, // received
  get missed() { return missed; },
  get connected() { return hello !== null && lostFor === null; },
};
schedule();
