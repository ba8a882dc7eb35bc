// What came true of a prediction: the mean M_t = (1 − γ)·x_{t+1} + γ·M_{t+1}, or the return G_t = x_{t+1} + γ·G_{t+1},
// with γ of sample t + 1: a number, the value of a signal, or exp(−Δt/horizon).

// Of each sample from `from` on, as far as the stream goes. `left[j]` is the weight ∏γ of what is still to come.
export function realised(question, samples, signal, discount, from) {
  const { times, starts } = samples, n = Math.max(samples.length - from, 0);
  const G = new Float64Array(n), left = new Float64Array(n), isMean = question.meaning === "mean";
  if (n) left[n - 1] = 1;
  for (let j = n - 2; j >= 0; j--) {
    const next = from + j + 1;
    if (starts[next]) {
      left[j] = 1;
      continue;
    }
    const gamma = discount === null ? Math.exp((times[next - 1] - times[next]) / question.horizon)
      : typeof discount === "number" ? discount : discount[next];
    G[j] = (isMean ? 1 - gamma : 1) * signal[next] + (gamma === 0 ? 0 : gamma * G[j + 1]);
    left[j] = gamma * left[j + 1];
  }
  return { G, left };
}

// Of each bucket from `from` on, as if the signal had its mean throughout. `G` and `left` are those of the sample that comes after
// the last bucket. With a γ that is a signal there is nothing to tell.
export function realisedOfBuckets(question, history, signal, from, end, G, left) {
  const n = Math.max(history.length - from, 0), means = new Float64Array(n).fill(NaN), lefts = new Float64Array(n).fill(1);
  if (typeof question.discount === "string" || question.discount === 1) return { G: means, left: lefts };
  for (let j = n - 1; j >= 0; j--) {
    const b = from + j;
    const seconds = (b + 1 < history.length ? history.begins[b + 1] : end) - history.begins[b];
    // γ of the whole bucket, its mean from each sample to the end of the bucket, and the weight of a constant signal.
    const whole = question.discount === null ? Math.exp(-seconds / question.horizon) : question.discount ** history.width;
    const mean = whole === 1 ? 1 : whole === 0 ? 0 : (whole - 1) / Math.log(whole);
    const sum = question.meaning === "mean" ? 1 : 1 / (1 - whole ** (1 / history.width));
    means[j] = (1 - mean) * signal[b] * sum + mean * G;
    lefts[j] = mean * left;
    G = (1 - whole) * signal[b] * sum + whole * G;
    left *= whole;
  }
  return { G: means, left: lefts };
}
