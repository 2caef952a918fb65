import { expect, it } from 'vitest';
import path from 'node:path';
import { projectRoot, runOpmate } from '../support/command-line.js';

it('runs the demo from end to end', async () => {
  const { code, stdout, stderr } = await runOpmate([], { file: path.join(projectRoot, 'bin', 'demo.js') });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('Done.');
}, 120_000);
