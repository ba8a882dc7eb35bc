// The samples at hand, with the buckets of what is older.

import { median } from "./words.js";

// Buckets of consecutive samples, from the beginning on. An object never changes: `with` makes another one.
export class History {
  constructor(parts = { first: 0, width: 1, begins: new Float64Array(), ends: new Float64Array(), columns: [], lows: [], highs: [] }) {
    Object.assign(this, parts);
    this.length = this.begins.length;
    this.end = this.first + this.length * this.width; // the number of the next sample
    const steps = Array.from(this.begins.subarray(1), (begin, b) => begin - this.begins[b]);
    this.typical = median(steps); // seconds from bucket to bucket
  }

  with(frame) {
    if (frame.anew || !this.length) return new History(frame);
    const both = (name) => (Array.isArray(this[name]) ? this[name].map((each, k) => joined(each, frame[name][k])) : joined(this[name], frame[name]));
    const parts = Object.fromEntries(["begins", "ends", "columns", "lows", "highs"].map((name) => [name, both(name)]));
    return new History({ first: this.first, width: this.width, ...parts });
  }

  // Whether something is missing before a bucket: there is much more time than usual.
  gapBefore(b) { return b > 0 && this.begins[b] - this.ends[b - 1] > 2 * this.typical; }
}

function joined(first, second) {
  const both = new first.constructor(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

export class Samples {
  // `signals` and `questions` are numbers, in the order of the columns; `kept` samples stay.
  constructor(signals, questions, kept) {
    this.kept = kept;
    this.length = 0;
    this.end = 0; // the number of the next sample
    this.history = new History();
    this.ofSignal = new Map(signals.map((number, column) => [number, column]));
    this.ofPrediction = new Map(questions.map((number, column) => [number, signals.length + column]));
    this.questions = questions.length; // the bands come so many columns later
    this.times = new Float64Array(2 * kept);
    this.received = new Float64Array(2 * kept);
    this.starts = new Uint8Array(2 * kept);
    this.columns = Array.from({ length: signals.length + 3 * questions.length }, () => new Float32Array(2 * kept));
  }

  // Times must rise, or nothing could be found by its time. Where a clock was set back, what came before is forgotten.
  // Returns whether it was.
  append(frame) {
    let back = frame.length - 1;
    while (back > 0 && frame.times[back] >= frame.times[back - 1]) back--;
    const forgets = back > 0 || (back === 0 && this.length > 0 && frame.times[0] < this.newest());
    if (forgets) {
      this.length = 0;
      if (this.history.first < this.end) this.history = new History(); // or it is that of the time after
    }
    const from = Math.max(frame.length - this.kept, back, 0), n = frame.length - from;
    if (this.length + n > 2 * this.kept) { // rarely: the newer half moves to the front
      const stay = Math.min(this.kept, this.length);
      for (const all of [this.times, this.received, this.starts, ...this.columns]) {
        all.copyWithin(0, this.length - stay, this.length);
      }
      this.length = stay;
    }
    this.times.set(frame.times.subarray(from), this.length);
    this.received.set(frame.received.subarray(from), this.length);
    this.starts.set(frame.starts.subarray(from), this.length);
    frame.columns.forEach((column, c) => this.columns[c].set(column.subarray(from), this.length));
    if (frame.missed && n) this.starts[this.length] = 1; // there is a hole before it
    this.length += n;
    this.end = frame.first + frame.length;
    return forgets;
  }

  // A copy of the samples before number `end`, to be looked at while others come.
  until(end) {
    const copy = Object.assign(Object.create(Samples.prototype), this);
    copy.length = Math.max(Math.min(this.length, this.length - (this.end - end)), 0);
    copy.end = Math.min(this.end, end);
    for (const name of ["times", "received", "starts"]) copy[name] = this[name].slice(0, copy.length);
    copy.columns = this.columns.map((column) => column.slice(0, copy.length));
    return copy;
  }

  oldest() { return this.times[Math.max(this.length - this.kept, 0)]; }
  newest() { return this.length ? this.times[this.length - 1] : NaN; }

  // The earliest time of which anything is known.
  earliest() { return this.history.length ? Math.min(this.history.begins[0], this.oldest()) : this.oldest(); }

  // Seconds from sample to sample, by the first that are at hand.
  step() {
    const from = Math.max(this.length - this.kept, 0), some = this.times.subarray(from, Math.min(from + 200, this.length));
    return median(Array.from(some.subarray(1), (time, k) => time - some[k]).filter((step) => step > 0));
  }

  // The first sample at or after a time.
  find(time) {
    let low = Math.max(this.length - this.kept, 0), high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
