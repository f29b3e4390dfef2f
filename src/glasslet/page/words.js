// Durations, times, sizes and commands in words: the same as the command line's (glasslet.answers.words).

/** @type {[string, number, string, number, number][]} */
const UNITS = [['min', 60, 's', 1, 60], ['h', 3600, 'min', 60, 24], ['d', 86400, 'h', 3600, 1e9]];

/** 280 ms, 1.5 s, 41 s, 4 min 12 s, 2 h 5 min, 3 d 4 h; negative counts as 0. */
export function duration(seconds) {
  if (seconds < 0.9995) return `${even(Math.max(0, seconds) * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`.replace('.0 s', ' s');
  const whole = even(seconds);
  if (whole < 60) return `${whole} s`;
  for (const [unit, size, smaller, part, most] of UNITS) {
    if (whole < size * most) {
      const rest = Math.floor((whole % size) / part);
      return `${Math.floor(whole / size)} ${unit}${rest ? ` ${rest} ${smaller}` : ''}`;
    }
  }
  return `${whole} s`;
}

/** 0.4 ms, 128 ms, 2.31 s, beyond ten seconds as `duration`. */
export function ms(value) {
  if (value < 9.95) return `${value.toFixed(1)} ms`;
  if (value < 999.5) return `${even(value)} ms`;
  if (value < 9995) return `${(value / 1000).toFixed(2)} s`;
  return duration(value / 1000);
}

/** Rounds halves to the even neighbour, as Python does. */
function even(value) {
  const low = Math.floor(value);
  const rest = value - low;
  if (rest !== 0.5) return Math.round(value);
  return low % 2 ? low + 1 : low;
}

/** How long ago a time was, for `data-since`. */
export const age = (now, since) => duration((now - Date.parse(since)) / 1000);

/** The time of day in UTC, as the agent's sentences have it. */
export function clock(time, { millis = false } = {}) {
  if (!time) return '';
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString().slice(11, millis ? 23 : 19);
}

export const dateTime = (time) => (time ? `${new Date(time).toISOString().slice(0, 19).replace('T', ' ')} UTC` : '');

/** 512 B, 31 MB, 1.28 GB: decimal, as registries count. */
export function bytes(value) {
  const power = [3, 2, 1].find((one) => value >= 1000 ** one);
  if (!power) return `${Math.round(value)} B`;
  const count = value / 1000 ** power;
  return `${count.toFixed(count < 10 ? 2 : 0)} ${['kB', 'MB', 'GB'][power - 1]}`;
}

export const percent = (part) => (part > 0 && part < 0.001 ? '<0.1 %' : `${(part * 100).toFixed(part < 0.1 ? 1 : 0)} %`);

export const cut = (text, most) => (text.length > most ? `${text.slice(0, most)}… (${text.length} characters)` : text);
