// The samples at hand, and the returns that follow from them.

export class Samples {
  // `signals` and `predictions` are the numbers of signals and questions, in the order of the columns; `kept` samples stay.
  constructor(signals, predictions, kept) {
    this.kept = kept;
    this.length = 0;
    this.end = 0; // the number of the next sample
    this.ofSignal = new Map(signals.map((number, column) => [number, column]));
    this.ofPrediction = new Map(predictions.map((number, column) => [number, signals.length + column]));
    this.times = new Float64Array(2 * kept);
    this.received = new Float64Array(2 * kept);
    this.starts = new Uint8Array(2 * kept);
    this.columns = Array.from({ length: signals.length + predictions.length }, () => new Float32Array(2 * kept));
  }

  // Times must rise, or nothing could be found by its time. Where a clock was set back, what came before is forgotten.
  // Returns whether it was.
  append(frame) {
    let back = frame.length - 1;
    while (back > 0 && frame.times[back] >= frame.times[back - 1]) back--;
    const forgets = back > 0 || (back === 0 && this.length > 0 && frame.times[0] < this.newest());
    if (forgets) this.length = 0;
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

// The return of each sample from `from` on: G_j = C_{j+1} + γ_{j+1}·G_{j+1}, cut where the stream begins anew or ends.
// `left[j]` is the weight ∏γ of what is cut off, and `weight[j]` the weight Σ∏γ of what is there.
export function returns(signal, discount, starts, from, end) {
  const n = Math.max(end - from, 0);
  const G = new Float64Array(n), left = new Float64Array(n), weight = new Float64Array(n);
  if (n) left[n - 1] = 1;
  for (let j = n - 2; j >= 0; j--) {
    const next = from + j + 1;
    if (starts[next]) {
      left[j] = 1;
      continue;
    }
    const gamma = typeof discount === "number" ? discount : discount[next];
    G[j] = signal[next] + (gamma === 0 ? 0 : gamma * G[j + 1]);
    left[j] = gamma * left[j + 1];
    weight[j] = 1 + gamma * weight[j + 1];
  }
  return { G, left, weight };
}
