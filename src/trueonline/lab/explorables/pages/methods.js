// The methods, the forward view and random numbers. Nothing here knows of a page: Node can run this file as it stands.
//
//   const { METHODS, Learner, onlineLambdaReturn, random, dot } = trueonline.methods;
//
//   METHODS.true_online            {name, title, trace, colour, dashes, marker}: how a method is called and drawn
//   new Learner("true_online", size, {alpha, gamma, lam, weights})
//     .w, .e                       weights and trace (Float64Array); gamma, lam, alpha may be changed between steps
//     .start()                     clears the trace, as at the begin of an episode that follows a truncated one
//     .value(x)                    wᵀx
//     .update(x, reward, xNext)    one step; x is an array of numbers (replace: 0 or 1). Returns {v, vNext, delta, vOld, traceX}
//     .update(x, reward, null)     the last step of an episode: no value follows, and the next step finds no trace
//   onlineLambdaReturn({features, rewards, alpha, gamma, lam, weights, terminal})  the triangle of updates (see there)
//   random(seed)                   a generator: .uniform() in [0, 1), .integer(n), .normal(), .chance(p)
"use strict";
globalThis.trueonline = globalThis.trueonline || {};
trueonline.methods = (() => {
  // Names, dashes and markers are those of the package's catalogue. The colours are set in style.css.
  const METHODS = {
    accumulate: { name: "accumulate", title: "accumulate TD(λ)", trace: "accumulating", colour: "var(--accumulate)", dashes: "6 2", marker: "square" },
    replace: { name: "replace", title: "replace TD(λ)", trace: "replacing", colour: "var(--replace)", dashes: "2 2", marker: "triangle" },
    true_online: { name: "true_online", title: "true online TD(λ)", trace: "dutch", colour: "var(--true-online)", dashes: "", marker: "circle" },
  };

  function dot(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
  }

  // One method over dense features. The steps stand in the order of the paper's pseudo-code.
  class Learner {
    constructor(method, size, { alpha, gamma = 1, lam = 0, weights = null }) {
      if (!(method in METHODS)) throw new Error(`no method is called ${method}: take ${Object.keys(METHODS).join(", ")}`);
      this.method = method;
      this.alpha = alpha;
      this.gamma = gamma;
      this.lam = lam;
      this.w = weights ? Float64Array.from(weights) : new Float64Array(size);
      this.e = new Float64Array(size);
      this.start();
    }

    start() {
      this.e.fill(0);
      this.vOld = 0;
      this.ended = true;
    }

    value(x) {
      return dot(this.w, x);
    }

    update(x, reward, xNext) {
      const { w, e, alpha } = this;
      const n = w.length;
      const decay = this.ended ? 0 : this.gamma * this.lam;
      const v = dot(w, x);
      const vNext = xNext ? dot(w, xNext) : 0;
      const delta = reward + this.gamma * vNext - v;
      const traceX = dot(e, x);
      const vOld = this.ended ? v : this.vOld; // at the first step e = x, and V_old cancels
      if (this.method === "true_online") {
        const dutch = 1 - alpha * decay * traceX;
        for (let i = 0; i < n; i++) e[i] = decay * e[i] + dutch * x[i];
        const along = alpha * (delta + v - vOld);
        const back = alpha * (v - vOld);
        for (let i = 0; i < n; i++) w[i] += along * e[i] - back * x[i];
      } else {
        if (this.method === "replace") {
          for (let i = 0; i < n; i++) if (x[i] !== 0 && x[i] !== 1) throw new Error(`replacing traces need features of 0 or 1, got ${x[i]}`);
          for (let i = 0; i < n; i++) e[i] = x[i] === 1 ? 1 : decay * e[i];
        } else for (let i = 0; i < n; i++) e[i] = decay * e[i] + x[i];
        for (let i = 0; i < n; i++) w[i] += alpha * delta * e[i];
      }
      this.vOld = vNext;
      this.ended = !xNext;
      return { v, vNext, delta, vOld, traceX };
    }
  }

  // The online λ-return algorithm, from its definition: at every horizon h all updates are made again, from the first weights.
  //   features  x_0, …, x_T   (with terminal: true the last of them is never read; it may be null)
  //   rewards   R_1, …, R_T
  // Returns one row for each horizon h = 1, …, T: {h, cells, weights}. A cell is the update of S_k:
  //   {k, h, returns, shares, target, v, error, change, weights}
  // with the n-step returns, their shares in the interim λ-return, target = G_k^{λ|h}, v = (w_k^h)ᵀx_k, error = target − v,
  // change = α·error·x_k and weights = w_{k+1}^h. The last weights of row h are w_h.
  function onlineLambdaReturn({ features, rewards, alpha, gamma, lam, weights, terminal = false }) {
    const steps = rewards.length;
    const first = Float64Array.from(weights);
    const nextValues = []; // V(S_{j+1} | w_j)
    const rows = [];
    let before = first;
    for (let h = 1; h <= steps; h++) {
      nextValues.push(terminal && h === steps ? 0 : dot(before, features[h]));
      let w = first;
      const cells = [];
      for (let k = 0; k < h; k++) {
        const { returns, shares } = interimReturns(k, h, rewards, nextValues, gamma, lam);
        const target = dot(shares, returns);
        const x = features[k];
        const v = dot(w, x);
        const error = target - v;
        const change = Float64Array.from(x, (xi) => alpha * error * xi);
        w = w.map((wi, i) => wi + change[i]);
        cells.push({ k, h, returns, shares, target, v, error, change, weights: w });
      }
      rows.push({ h, cells, weights: w });
      before = w;
    }
    return rows;
  }

  function interimReturns(k, h, rewards, nextValues, gamma, lam) {
    const returns = [];
    const shares = [];
    let sum = 0;
    let discount = 1;
    let left = 1;
    for (let j = k; j < h; j++) {
      sum += discount * rewards[j];
      discount *= gamma;
      returns.push(sum + discount * nextValues[j]);
      shares.push(j === h - 1 ? left : left * (1 - lam));
      left *= lam;
    }
    return { returns, shares };
  }

  // Mulberry32: small, fast, and the same numbers in every browser.
  function random(seed) {
    let state = seed >>> 0;
    const uniform = () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    return {
      uniform,
      integer: (n) => Math.floor(uniform() * n),
      chance: (p) => uniform() < p,
      normal: () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()),
    };
  }

  return { METHODS, Learner, onlineLambdaReturn, random, dot };
})();
