// The page of `trueonline live`: what it was told, what it shows, and the controls.

import { Chart } from "./charts.js";
import { Samples } from "./samples.js";
import { scored, Table } from "./table.js";
import { amount, firstScore, median, span, uptime, whole } from "./words.js";
import { Connection } from "./wire.js";

const $ = (id) => document.getElementById(id);
const LENGTHS = [10, 30, 120, 600, 1800, 7200, 43200, 172800]; // seconds that can be shown at a time; three of them are
const SCARCE = 100; // a length that shows fewer samples than this is too short
const DELAYS = 400; // the delay is the median of so many samples
const WALL_CLOCK = 1e8; // times above are seconds since 1970, times below since the beginning

let hello = null;
let signalNumbers = new Map();
let samples = null, coming = null; // at hand, and subscribed to but not begun
let status = {}, scores = null;
let charts = [];
let shown = []; // numbers of questions
let length = 30; // seconds shown
let zoom = null; // [from, to], or null to follow
let frozenAt = null; // paused: the number of the first sample not to draw
let missed = 0, drawnTo = 0, liveSince = Infinity, clockOffset = 0, quickest = Infinity;
let delays = [];
let lostFor = null; // seconds until the next trial, when there is no connection

// --- What comes ------------------------------------------------------------------------------------

const receive = {
  hello(message) {
    hello = message;
    lostFor = null;
    missed = 0;
    signalNumbers = new Map(hello.signals.map((name, number) => [name, number]));
    document.title = hello.title ? `${hello.title} – trueonline` : "trueonline";
    $("title").textContent = hello.title || "trueonline";
    const wanted = remembered("shown", []).map((name) => hello.questions.findIndex((each) => each.name === name));
    const known = wanted.filter((number) => number >= 0).slice(0, hello.most);
    table.fill(hello.questions, hello.most);
    makeWindows();
    for (const chart of charts) remove(chart);
    charts = [];
    samples = coming = null;
    const differs = known.length && known.join() !== hello.shown.join();
    show(differs ? known : hello.shown, differs);
    askClock();
  },
  subscribed(message) {
    const kept = Math.round(hello.kept * hello.rate);
    coming = { number: message.number, samples: new Samples(message.signals, message.questions, kept), since: message.clock };
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
    for (const chart of charts) {
      if (frozenAt === null) chart.source = chart.has(samples) ? samples : null;
      else if (!chart.source && chart.has(samples)) chart.source = samples.until(frozenAt);
    }
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
    table.update(scores);
    for (const chart of charts) tellScore(chart);
  },
  clock({ yours, mine }) {
    const now = Date.now() / 1000, took = now - yours;
    if (took < quickest) [quickest, clockOffset] = [took, mine - (now + yours) / 2];
  },
};

const table = new Table($("list"), $("find"), $("more"), toggle);
history.replaceState(null, "", location.pathname); // the token is in the cookie now, and need not be in the address
const connection = new Connection((message) => receive[message.kind]?.(message), (wait) => {
  lostFor = wait;
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
  build();
}

function remove(chart) {
  chart.uplot?.destroy();
  chart.element.remove();
}

function tellScore(chart) {
  if (!scores?.scored[chart.number]) {
    const wait = status.state === "ended" ? "" : firstScore(chart.question);
    chart.score.textContent = wait && `error: ${wait}`;
    chart.score.title = wait && "an error is told when what was predicted has come, but for a millionth";
    return;
  }
  const { error, mean } = scored(chart.question, scores, chart.number);
  const share = mean ? Math.abs(error / mean) : NaN;
  const unit = chart.question.unit && !chart.raw ? ` ${chart.question.unit}` : "";
  chart.score.textContent = `error ${amount(error)}${unit}${share < 10 ? ` (${Number((100 * share).toPrecision(2))} %)` : ""}`;
  chart.score.title = "mean absolute difference between prediction and what came, and its share of the mean of what came";
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
  if (charts.some((chart) => chart.key !== chartKey())) build(false);
  const range = currentRange();
  if (frozenAt === null && zoom && samples?.length && samples.oldest() > zoom[0]) pause(); // or it would melt away
  if (range) {
    for (const chart of charts) if (frozenAt === null || chart.source) chart.draw(range, !zoom);
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
  return [end - length, end];
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

const isWallClock = () => (samples?.length ? samples.newest() > WALL_CLOCK : false);
const needsRight = () => charts.some((chart) => chart.raw);
const chartKey = () => [isWallClock(), needsRight()].join();

function build(thenDraw = true) {
  const colours = Object.fromEntries(["signal", "prediction", "realised", "soft", "grid", "mark"].map(
    (name) => [name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()]));
  const options = { ...size(), wallClock: isWallClock(), rightAxis: needsRight(), colours };
  for (const chart of charts) chart.build(options);
  if (thenDraw) schedule();
}

const narrow = matchMedia("(max-width: 800px)");

function size() {
  const width = Math.max($("charts").clientWidth - 2, 200);
  const top = $("charts").getBoundingClientRect().top + scrollY;
  const each = (innerHeight - top - 12) / Math.max(charts.length, 1) - 44;
  return { width, height: Math.round(narrow.matches ? 170 : Math.min(Math.max(each, 130), 330)) };
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
  $("state").dataset.state = lostFor !== null ? "lost" : frozenAt !== null ? "paused" : status.state ?? "waiting";
  const empty = emptyWords();
  $("empty").hidden = !empty;
  $("charts").hidden = !shown.length;
  write("empty", empty);
  if ($("note").textContent !== (status.note ?? "")) {
    write("note", status.note ?? "");
    $("note").hidden = !status.note;
    resize(); // there is less room for the charts, or more
  }
  if (!tellingAt) tellingAt = setTimeout(tellFigures, 250);
}

function tellFigures() {
  tellingAt = 0;
  write("samples", whole(status.samples ?? samples?.end));
  write("rate", Number.isFinite(status.rate) ? `${amount(status.rate)} Hz` : "–");
  const reasons = Object.entries(status.dropped ?? {}).filter(([, number]) => number > 0);
  write("dropped", whole(reasons.reduce((sum, [, number]) => sum + number, 0)));
  const text = reasons.map(([reason, number]) => `${reason}: ${whole(number)}`);
  $("dropping").title = text.join("\n") || "nothing was dropped";
  if ($("reasons").dataset.text !== text.join()) {
    $("reasons").dataset.text = text.join();
    $("reasons").replaceChildren(...(text.length ? text : ["nothing was dropped"]).map((line) => {
      const item = document.createElement("li");
      item.textContent = line;
      return item;
    }));
  }
  $("clipping").hidden = !status.clipped;
  write("clipped", whole(status.clipped));
  $("missing").hidden = !missed;
  write("missed", whole(missed));
  write("delay", delays.length ? `${whole(Math.max(median(delays), 0))} ms` : "–");
  write("uptime", uptime(status.uptime));
}

function write(id, words) {
  if ($(id).textContent !== words) $(id).textContent = words;
}

function stateWords() {
  if (lostFor !== null) return "connection lost – trying again";
  if (frozenAt !== null) return "paused – learning goes on";
  return { learning: "learning", ended: "the stream has ended" }[status.state] ?? "waiting for samples";
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
  $("reset").hidden = false;
  markWindows();
  schedule();
}

function reset() {
  zoom = null;
  $("reset").hidden = true;
  markWindows();
  schedule();
}

// Make the stretch shown longer or shorter, or move it by a share of itself.
function zoomBy(factor, move = 0) {
  const range = currentRange();
  if (!range) return;
  const half = (range[1] - range[0]) / 2 * factor, middle = (range[0] + range[1]) / 2 + move * (range[1] - range[0]);
  pick(middle - half, middle + half);
}

function lengths() {
  const first = Math.max(LENGTHS.findIndex((each) => each * hello.rate >= SCARCE), 0);
  const some = LENGTHS.slice(first, first + 3).filter((each) => each <= 1.5 * hello.kept);
  return some.length ? some : [Number(hello.kept.toPrecision(1))];
}

function makeWindows() {
  const offered = lengths(), before = remembered("length", null);
  length = offered.includes(before) ? before : offered[Math.min(1, offered.length - 1)];
  $("windows").replaceChildren(...offered.map((each, k) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: span(each), title: `Show the last ${span(each)} (${k + 1})` });
    button.dataset.length = each;
    button.setAttribute("aria-keyshortcuts", k + 1);
    button.addEventListener("click", () => {
      length = each;
      remember("length", each);
      reset();
    });
    return button;
  }));
  markWindows();
}

function markWindows() {
  for (const button of $("windows").children) button.setAttribute("aria-pressed", !zoom && Number(button.dataset.length) === length);
}

const keys = {
  p: pause, " ": pause, 0: reset, Escape: reset, "+": () => zoomBy(0.5), "=": () => zoomBy(0.5), "-": () => zoomBy(2),
  ArrowLeft: () => zoomBy(1, -0.25), ArrowRight: () => zoomBy(1, 0.25), "/": () => $("find").focus(),
  "?": () => { $("help").open = !$("help").open; },
};
for (const k of [1, 2, 3]) keys[k] = () => $("windows").children[k - 1]?.click();

addEventListener("keydown", (event) => {
  const typing = event.target.matches("input[type=search]");
  const own = event.target.matches("button, summary, input") && [" ", "Enter"].includes(event.key); // does its own thing
  if (event.ctrlKey || event.metaKey || event.altKey || own) return;
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});
$("pause").textContent = "pause";
$("pause").addEventListener("click", pause);
$("reset").addEventListener("click", reset);
document.addEventListener("click", (event) => { if (!event.target.closest("#dropping")) $("dropped-details").open = false; });

function remember(name, value) {
  try { localStorage.setItem(`trueonline.${name}`, JSON.stringify(value)); } catch { /* not allowed here: it is forgotten */ }
}

function remembered(name, otherwise) {
  try { return JSON.parse(localStorage.getItem(`trueonline.${name}`)) ?? otherwise; } catch { return otherwise; }
}

// --- For tests -------------------------------------------------------------------------------------

const chartOf = (name) => charts.find((chart) => chart.question.name === name);
window.trueonline = {
  delay: () => median(delays), // ms from the arrival of a sample to its drawing, median
  delays: () => [...delays],
  points: (name) => chartOf(name)?.data[1].filter((value) => value !== null).length ?? 0, // that are drawn
  series(name) {
    const [times, signal, realised, soFar, prediction] = chartOf(name)?.data ?? [];
    return { times, signal, realised, soFar, prediction };
  },
  marks: (name) => chartOf(name)?.marks, // of the time axis: [time, words]
  shown: () => shown.map((number) => hello.questions[number].name),
  range: currentRange,
  get paused() { return frozenAt !== null; },
  get samples() { return samples?.end ?? 0; }, // received
  get missed() { return missed; },
  get connected() { return hello !== null && lostFor === null; },
};
schedule();
