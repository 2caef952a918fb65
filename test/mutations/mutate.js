// Changes of bytes and of arguments, from a generator that gives the same for the same seed.

/** Mulberry32: small, fast, and good enough to choose changes. */
export function createRandom(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit) => Math.floor(next() * limit);
  return { next, below, pick: (list) => list[below(list.length)] };
}

const tokens = [
  'null', 'true', '[]', '{}', '""', '0', '-1', '1e400', '9223372036854775808', '"\\ud800"', '\u0000', '\n---\n', '&a *a', '!!binary x',
  '<<: *x', '%YAML 9.9\n', '\ufeff', '{{.X}}', '../../etc/passwd', '/dev/null', 'a'.repeat(5000), '[['.repeat(200), '{"a":'.repeat(200),
  '1.2.3-', 'v999999999999999999999.0.0', 'sha256:', 'sha256:' + '0'.repeat(64), 'http://[::1', 'localhost:99999/x:y', '\u202e', '\ud83d\ude00', '\t', '# ',
]; // prettier-ignore

/** Bytes with one to four changes. */
export function mutateBytes(original, random) {
  let bytes = Buffer.from(original);
  for (let left = 1 + random.below(4); left > 0; left--) {
    const at = random.below(bytes.length + 1);
    const length = random.below(Math.min(64, bytes.length - at) + 1);
    const [before, part, after] = [bytes.subarray(0, at), bytes.subarray(at, at + length), bytes.subarray(at + length)];
    const kind = random.below(9);
    if (kind === 0 && bytes.length > 0) bytes[Math.min(at, bytes.length - 1)] ^= 1 << random.below(8);
    else if (kind === 1) bytes = Buffer.concat([before, after]);
    else if (kind === 2) bytes = Buffer.concat([before, part, part, after]);
    else if (kind === 3) bytes = Buffer.concat([before, Buffer.from(random.pick(tokens)), after]);
    else if (kind === 4) bytes = Buffer.from(before);
    else if (kind === 5) bytes = Buffer.concat([before, Buffer.from(random.pick(tokens)), part, after]);
    else bytes = mutateValue(bytes, at, random);
  } // prettier-ignore
  return bytes;
}

/** Replaces the next value of JSON or YAML, or removes its line: documents that parse, and are wrong. */
function mutateValue(bytes, at, random) {
  const text = bytes.toString('latin1');
  const value = /(": ?|: )("(?:[^"\\\n]|\\.)*"|[^\s,}\]]+)/g;
  value.lastIndex = at;
  const match = value.exec(text);
  if (match === null) return bytes;
  const start = match.index + match[1].length;
  const replacement = random.pick([...tokens.slice(0, 10), `"${random.pick(['', 'x', '\\u0000', '../x', '1.0', 'ns/name'])}"`]);
  return Buffer.concat([
    bytes.subarray(0, start),
    Buffer.from(replacement),
    bytes.subarray(match.index + match[0].length),
  ]);
} // prettier-ignore

const words = [
  '', '-', '--', '.', '..', '/dev/null', 'in', 'none', '\u0000', 'a\nb', '-1', '0', '99999999999999999999', '1e9', 'NaN', '10x', 'docker://', 'oci:',
  'oci:in/layout', 'oci:in/layout:', 'oci:in/layout@sha256:00', 'oci-archive:in/index.db', 'docker-archive:in/set.yaml', 'localhost:99999/a:b', 'http://', 'https://[',
  'file://', 'file://\u0000', 'a'.repeat(300), 'a'.repeat(5000), 'a/'.repeat(2500), '%zz', 'ü', '\ud800', '{{', '*', '(', '[', '\\', '>=', '1.2.3 - x', 'sha256:zz', 'x=y', '=', 'git://x', 'ssh://@',
  'in/catalog', 'in/index.db', 'in/layout', 'in/bundle',
]; // prettier-ignore
const flags = [
  '-o=json', '-o=yaml', '--output=x', '--debug=false', '--log-format=json', '--log-level=x', '--platform=x/y/z/w', '--use-http', '--authfile=none', '--authfile=in', '--ca-file=in/set.yaml', '--cert-dir=none',
  '--max-entries=0', '--max-entries=1', '--max-ratio=0', '--max-unpacked-size=1', '--max-unpacked-size=1Q', '--retry-timeout=-1s', '--retry-timeout=0s', '--help', '--packages=', '--package=', '--tag=', '--tag=\u0000', '--version=\u0000', '--channel=',
]; // prettier-ignore

/** A command line with one to three changed, missing, repeated or additional words; the name of the command stays. */
export function mutateArguments(command, random) {
  const args = [...command];
  for (let left = 1 + random.below(3); left > 0; left--) {
    const at = 1 + random.below(args.length);
    const kind = random.below(6);
    if (kind <= 1 && at < args.length) args[at] = random.pick(words);
    else if (kind === 2) args.splice(at, 1);
    else if (kind === 3) args.splice(at, 0, random.pick(words));
    else if (kind === 4) args.push(random.pick(flags));
    else if (at < args.length && args[at].includes('/')) args[at] += random.pick(words);
  }
  return args;
}
