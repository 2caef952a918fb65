import { fileURLToPath } from 'node:url';
import { compare, opmate } from './support/measure.js';

export const summary = 'opmate --help, as a ratio to node -e 0';

export function run() {
  const nothing = fileURLToPath(new URL('./support/nothing.js', import.meta.url));
  return compare({
    name: '--help',
    subject: [opmate, ['--help']],
    baseline: [nothing, []],
    runs: 20,
    maxRatio: 2,
  });
}
