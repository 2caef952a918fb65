import { expect, it } from 'vitest';
import {
  type AuditEntry,
  appendAudit,
  readRecordedRuns,
} from '../../../../src/mirror/history/audit-trail.js';
import { directoryWith } from '../../../support/temporary.js';

it('finds a run of many images before the current one', async () => {
  const entries = (run: string, images: number): AuditEntry[] => [
    { time: run, run, event: 'started', task: 'mirror', destination: 'docker://registry.example.com' },
    ...Array.from({ length: images }, (_, i): AuditEntry => ({
      ...{ time: run, run, event: 'copied', digest: `sha256:${'0'.repeat(64)}` },
      ...{ image: `registry.example.com/${'a'.repeat(200)}:${i}`, from: 'registry.example.org' },
    })),
    { time: run, run, event: 'failed', image: 'registry.example.com/lost', problem: 'not found' },
  ];
  const root = await directoryWith();
  for (const [run, images] of [['1', 1] as const, ['2', 30_000] as const, ['3', 0] as const])
    await appendAudit(root, entries(run, images));
  const runs = await readRecordedRuns(root);
  expect(runs.map(({ started }) => started.run).slice(0, 2)).toEqual(['3', '2']);
  expect(runs[1]?.failed.map(({ image }) => image)).toEqual(['registry.example.com/lost']);
});
