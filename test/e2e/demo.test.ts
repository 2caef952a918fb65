import { expect, it } from 'vitest';
import path from 'node:path';
import { projectRoot, runOpmate, useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();
const file = path.join(projectRoot, 'bin', 'demo.js');

it('keeps the files of the demo on request', async () => {
  const kept = path.join(sandbox.work, 'kept');
  const { code, stdout, stderr } = await runOpmate(['--keep', kept], { file });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(`Done. Files: ${kept}.`);
  expect((await sandbox.run(['validate', path.join(kept, 'catalog')])).code).toBe(0);
  expect((await runOpmate(['--keep', kept], { file })).stderr).toContain('not empty');
});

it('describes the options of the demo', async () => {
  expect(await runOpmate(['--help'], { file })).toMatchObject({ code: 0, stderr: '' });
  expect(await runOpmate(['--other'], { file })).toMatchObject({ code: 2, stdout: '' });
});

it('runs the demo from end to end', async () => {
  const { code, stdout, stderr } = await runOpmate([], { file });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('Done.');
});
