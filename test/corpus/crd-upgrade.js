// Compares `bundle check-crd-upgrade` with operator-controller's preflight: verdict, and path and kind of each finding.
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { opmate } from './command.js';

export async function compareCrdUpgrade(corpus, report) {
  const folder = path.join(corpus, 'golden', 'crd-upgrade');
  for (const file of readdirSync(folder).sort()) {
    const [old, next, exit, ...lines] = readFileSync(path.join(folder, file), 'utf8').split('\n');
    const args = [old.replace(/^old /, ''), next.replace(/^new /, ''), '-o', 'json'];
    const result = await opmate(['bundle', 'check-crd-upgrade', ...args], corpus);
    report.check(`crd-upgrade/${file}`, differenceFrom(result, exit === 'exit 1' ? 3 : 0, lines));
  }
}

function differenceFrom({ exit, stdout, stderr }, wantedExit, lines) {
  if (exit !== wantedExit) return `exit ${exit}, wanted ${wantedExit}: ${stderr}${stdout}`;
  const wanted = new Set(lines.map(keyOf).filter((key) => key !== undefined));
  const got = new Set(
    JSON.parse(stdout).findings.map(({ version, property, code, message }) =>
      property === undefined ? wholeOf(code, message) : `${version}: ${property}: ${code}`,
    ),
  );
  const missing = [...wanted].filter((key) => !got.has(key));
  const further = [...got].filter((key) => !wanted.has(key));
  if (missing.length > 0) return `${missing.length} missing, first ${missing[0]}`;
  return further.length > 0 ? `${further.length} too many, first ${further[0]}` : undefined;
}

/** What a line of upstream's report is about: version, path and check; undefined where it goes on with another one. */
function keyOf(line) {
  const text = line.replace(/^validating upgrade for CRD "[^"]*": /, '');
  const property = /^(v\w+(?: -> v\w+)?): (\^[^:]*(?::[^ ][^:]*)*): (\w+): /.exec(text);
  if (property !== null) return `${property[1]}: ${property[2]}: ${property[3]}`;
  const whole = /^(scope|existingFieldRemoval|storedVersionRemoval): (.*)$/.exec(text);
  return whole === null ? undefined : wholeOf(whole[1], text);
}

/** Of a removed field, its path counts too. */
function wholeOf(check, text) {
  return check === 'existingFieldRemoval' ? `${check}: ${text.replace(/^.*: /, '')}` : check;
}
