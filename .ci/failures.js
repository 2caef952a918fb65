// Prints what failed in the output of a test run, and what passed at the second try only, short enough to end the output of CI:
// `.ci/failures.js TITLE EXIT-STATUS < LOG`. Knows vitest and the comparison with recorded answers; of other output, the end.
import { readFileSync } from 'node:fs';

const maxFailures = 30;
const maxDetailed = 6;
const maxLines = 10;
const maxColumns = 200;

const rule = /^⎯+(?:\[\d+\/\d+\]⎯+)?$/;
const heading = /^⎯+ (?:Unhandled|Uncaught) (?!Errors).*⎯+$/;
const failed = /^ FAIL {2}/;
const retried = /^ RETRY {2}/;
const difference = /^ {2}\S.*: /;

/** Yields the lines of each failure; a test begins with its name, tests with the same error share one. */
function* findFailures(lines, ...starts) {
  const isStart = (line) => starts.some((start) => start.test(line));
  const isEnd = (line) => [rule, heading, failed, retried].some((end) => end.test(line));
  for (let i = 0; i < lines.length; i++) {
    if (!isStart(lines[i])) continue;
    const failure = [lines[i]];
    while (isStart(lines[i + 1] ?? '')) failure.push(lines[++i]);
    while (i + 1 < lines.length && !isEnd(lines[i + 1])) failure.push(lines[++i]);
    yield failure;
  }
}

/** Yields recorded answers that differ, each one line below the line of its folder. */
function* findDifferences(lines) {
  const counted = /^\S+: (\d+) of (\d+) match/;
  for (let i = 0; i < lines.length; i++) {
    if (!counted.test(lines[i])) continue;
    while (difference.test(lines[i + 1] ?? '')) yield [lines[++i].trim()];
  }
  yield* lines.filter((line) => line.includes('matches now; remove it')).map((line) => [line]);
}

// The source that vitest shows is at the place in the line above it; each try repeats a name.
const isShown = (line, i, all) =>
  line !== '' && line !== all[i - 1] && !/^ *\d* *\||\/node_modules\/| node:internal\//.test(line);

function print(title, failures) {
  if (failures.length === 0) return;
  console.log(`-- ${title}`);
  for (const [i, failure] of failures.slice(0, maxFailures).entries()) {
    const shown = failure.filter(isShown);
    for (const line of shown.slice(0, i < maxDetailed ? maxLines : 2))
      console.log(`  ${line.trim().slice(0, maxColumns)}`);
  }
  if (failures.length > maxFailures) console.log(`  … and ${failures.length - maxFailures} more`);
}

const [title, status] = process.argv.slice(2);
const lines = readFileSync(0, 'utf8')
  .replaceAll(/\x1b\[[0-9;]*m/g, '')
  .split(/\r?\n/)
  .map((line) => line.trimEnd());
print(`passed at the second try: ${title}`, [...findFailures(lines, retried)]);
if (status !== '0') {
  const failures = [...findFailures(lines, failed, heading), ...findDifferences(lines)];
  const end = lines.filter((line) => line !== '').slice(-maxLines);
  print(`failed: ${title}`, failures.length === 0 ? [end] : failures);
}
