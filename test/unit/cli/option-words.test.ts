import { expect, it } from 'vitest';
import { formatWithHint } from '../../../src/core/diagnostic.js';
import { planMirror } from '../../../src/api/mirror.js';
import { openSession } from '../../../src/api/session.js';
import { LimitError } from '../../../src/core/errors.js';
import { nameFlags, withFlags } from '../../../src/cli/reports/option-words.js';
import { ArchiveMeter, defaultArchiveLimits } from '../../../src/archive/limits.js';

it('names the flag of an option in the hint of a lower room', () => {
  const meter = new ArchiveMeter({ ...defaultArchiveLimits, maxEntries: 0 });
  let hint = '';
  try {
    meter.countEntry('layer');
  } catch (error) {
    hint = (error as LimitError).hint ?? '';
  }
  expect(hint).toBe('raise the limit with limits.maxEntries if you trust the source');
  expect(withFlags(hint)).toBe('raise the limit with --max-entries if you trust the source');
});

it.each([
  [
    'add mirror.configFile FILE with an ImageSetConfiguration',
    'add --config FILE with an ImageSetConfiguration',
  ],
  ['mirror without mirror.locked to create a new lock', 'mirror without --locked to create a new lock'],
  ['create one with api.planMirror', 'create one with opmate mirror plan'],
])('names flags and commands in %j', (hint, words) => expect(withFlags(hint)).toBe(words));

it('names the commands that write an image set which is missing', async () => {
  const session = await openSession();
  const error = await planMirror('nowhere/set.yaml', 'docker://registry.test', session).catch(
    (e: unknown) => e,
  );
  expect(error).toMatchObject({ hint: 'create one with api.captureImageSet or api.viewCatalog' });
  expect(withFlags((error as LimitError).hint ?? '')).toBe(
    'create one with opmate mirror capture or opmate view',
  );
  await session.close();
});

it('keeps other text, and diagnostics without a hint', () => {
  for (const text of [
    'limits.toString',
    'registry.example.com/ns/image',
    'my-registry.useHttpToo',
    'mirror.openshift.io/v2alpha1',
    '',
  ]) {
    expect(withFlags(text)).toBe(text);
  }
  const finding = { severity: 'error', code: 'x', problem: 'only registry.authFile' } as const;
  expect(nameFlags(finding)).toEqual({ ...finding, problem: 'only --authfile' });
  expect(formatWithHint(nameFlags({ ...finding, hint: 'set session.platform' }))).toContain('--platform');
});
