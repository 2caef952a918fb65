import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect, it } from 'vitest';
import { projectRoot } from '../support/command-line.js';

it('commands report errors for randomly changed inputs', () => {
  const runner = path.join(projectRoot, 'test', 'mutations', 'run.js');
  const output = execFileSync(process.execPath, [runner, '80', '20'], { encoding: 'utf8' });
  expect(output).toMatch(/^80 runs with seed 20 in \d+ s, 0 failed\n$/);
});
