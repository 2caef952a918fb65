// `mirror` with charts or releases against oc-mirror v2: the cases of mirror-extra in their loopback world.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

/** `section` is `helm` or `platform`. */
export async function compareMirrorExtra(section, corpus, report) {
  const folder = path.join(corpus, 'mirror-extra');
  const script = path.join(folder, 'mirror_extra.py');
  const names = readdirSync(path.join(folder, section, 'cases'));
  const output = existsSync(script) ? await run(script, section, names.length) : 'mirror_extra.py: not found';
  const faults = faultsOf(output);
  const matched = Number(/^mirror-(?:helm|platform): (\d+)\/\d+$/m.exec(output)?.[1] ?? -1);
  // The sum must agree with what is listed; a comparer that ended early has none.
  const isWhole = matched === names.length - faults.size;
  for (const name of names)
    report.check(
      `mirror-extra/${section}/${name}`,
      isWhole ? faults.get(name) : output.trim().split('\n').at(-1),
    );
}

function faultsOf(output) {
  const faults = new Map();
  let name;
  for (const line of output.split('\n')) {
    const [, next] = /^--- (.+)$/.exec(line) ?? [];
    if (next !== undefined) name = next;
    else if (name !== undefined && line.startsWith('    '))
      faults.set(name, [faults.get(name), line.trim()].filter(Boolean).join('; '));
  }
  return faults;
}

/** What the comparer prints; python3 with PyYAML and docker-registry must be there. */
function run(script, section, count) {
  const args = [script, section, '--show', String(count), '--jobs', '2'];
  const child = spawn('python3', args, { env: { ...process.env, OPMATE_BUILT: root } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  return new Promise((resolve) => {
    child.on('error', (error) => resolve(`python3: ${error.message}`));
    child.on('close', () => resolve(output));
  });
}
