import { expect, it } from 'vitest';
import { formatWithHint } from '../../../src/core/diagnostic.js';
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

it('keeps other text, and diagnostics without a hint', () => {
  for (const text of ['limits.toString', 'registry.example.com/ns/image', 'my-registry.useHttpToo', '']) {
    expect(withFlags(text)).toBe(text);
  }
  const finding = { severity: 'error', code: 'x', problem: 'only registry.authFile' } as const;
  expect(nameFlags(finding)).toEqual({ ...finding, problem: 'only --authfile' });
  expect(formatWithHint(nameFlags({ ...finding, hint: 'set session.platform' }))).toContain('--platform');
});
