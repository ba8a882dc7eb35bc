// The WebSocket: messages in (their layout is in messages.py), requests out, and again after a loss.

const GOING = 1012; // the code of a server that ends in good order
const SAMPLES = 1, SCORES = 2;
const ERRORS = ["error", "hold", "mean", "recentError", "recentHold", "recentMean"];

// Takes arrays out of a message, one after the other.
function reader(buffer, at) {
  return (Kind, n) => {
    const part = new Kind(buffer, at, n);
    at += part.byteLength;
    return part;
  };
}

export function decode(buffer) {
  const view = new DataView(buffer), kind = view.getUint8(0);
  return (kind === SAMPLES ? decodeSamples : kind === SCORES ? decodeScores : decodeHistory)(buffer, view);
}

function decodeSamples(buffer, view) {
  const columns = view.getUint16(2, true), n = view.getUint32(4, true), take = reader(buffer, 24);
  return {
    kind: "samples", anew: view.getUint8(1) === 1, length: n, subscription: view.getUint32(8, true),
    missed: view.getUint32(12, true), first: view.getFloat64(16, true),
    times: take(Float64Array, n), received: take(Float64Array, n),
    columns: Array.from({ length: columns }, () => take(Float32Array, n)), starts: take(Uint8Array, n),
  };
}

function decodeScores(buffer, view) {
  const q = view.getUint32(4, true), take = reader(buffer, 8);
  const errors = Object.fromEntries(ERRORS.map((name) => [name, take(Float32Array, q)]));
  return { kind: "scores", ...errors, scored: take(Uint32Array, q) };
}

function decodeHistory(buffer, view) {
  const columns = view.getUint16(2, true), n = view.getUint32(4, true), signals = view.getUint32(12, true);
  const take = reader(buffer, 32), several = (number) => Array.from({ length: number }, () => take(Float32Array, n));
  return {
    kind: "history", anew: view.getUint8(1) === 1, subscription: view.getUint32(8, true),
    width: view.getFloat64(16, true), first: view.getFloat64(24, true),
    begins: take(Float64Array, n), ends: take(Float64Array, n),
    columns: several(columns), lows: several(signals), highs: several(signals),
  };
}

// Calls receive(message) with what comes, and lost(seconds until the next trial, whether in good order) when the connection ends.
export class Connection {
  constructor(receive, signal, lost) {
    this.receive = receive;
    this.signal = signal; // of a fleet, or null
    this.lost = lost;
    this.trials = 0;
    this.open();
  }

  open() {
    const url = new URL("feed", location.href);
    url.search = this.signal === null ? "" : `?signal=${encodeURIComponent(this.signal)}`;
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = ({ data }) => {
      this.trials = 0;
      if (typeof data === "string") {
        const message = JSON.parse(data);
        this.receive({ ...message, kind: message.type });
      } else this.receive(decode(data));
    };
    this.socket.onclose = ({ code }) => {
      const wait = Math.min(0.5 * 2 ** this.trials++, 10) * (0.8 + 0.4 * Math.random());
      this.lost(wait, code === GOING);
      setTimeout(() => this.open(), 1000 * wait);
    };
  }

  send(request) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(request));
  }
}
