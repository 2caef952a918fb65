import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findViolations, hasBrowser, requirePhonePage, screens, usePhone } from '../support/browser.js';
import { appendAudit } from '../../src/mirror/history/audit-trail.js';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import type { MirrorOverview } from '../../src/view/responses.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { serveOperatorSet } from '../support/operator-set.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
const hostile = '<img src=x onerror="window.ran=1">';
let source: FaultRegistry;
let target: Registry;
let destination: string;
let url: string;

beforeAll(async () => {
  source = await startFaultRegistry();
  const { catalog } = await serveOperatorSet(source);
  target = await startRegistry({ directory: at('target') });
  destination = `docker://${new URL(target.url).host}/m`;
  const select = (versions: string): string =>
    `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n  - catalog: ${catalog}\n    packages:\n    - name: widget\n${versions}`;
  await sandbox.write({ 'my set.yaml': select(''), 'all.yaml': select('      minVersion: 1.0.0\n') });
  for (const config of ['my set.yaml', 'all.yaml', 'my set.yaml'])
    expect(
      await sandbox.run(['mirror', '-c', config, '--workspace', 'file://space', '--use-http', destination]),
    ).toMatchObject({ code: 0 });
  url = await sandbox.serve(['view', '--mirror', 'space']).firstLine();
});
afterAll(async () => {
  await target.close();
  await source.close();
});

const read = async (): Promise<MirrorOverview> =>
  (await (await fetch(new URL('api/mirror', url))).json()) as MirrorOverview;

/** Appends a run that failed for an image with a hostile name, as a run does. */
async function addIncompleteRun(): Promise<void> {
  const run = { time: '2030-01-31T12:30:00.000Z', run: '2030-01-31T12:30:00.000Z' };
  await appendAudit(at('space', 'working-dir'), [
    { ...run, event: 'started', task: 'mirror', destination, configuration: 'my set.yaml' },
    {
      ...{ ...run, event: 'copied', image: 'a', digest: 'sha256:0', from: 'b' },
      verification: { status: 'verified', reason: '' },
    },
    { ...run, event: 'failed', image: hostile, from: 'x', problem: 'not found' },
    { ...run, event: 'ended', result: 'partly', images: 1, failed: 1, blobs: 2, bytes: 2048 },
  ]);
}

describe('opmate view --mirror', () => {
  it('shows runs, generations with their differences, and the commands to run next', async () => {
    expect(url).toMatch(/#\/mirror$/);
    const done = await read();
    expect(done).toMatchObject({ workspace: 'space', destination, state: 'done', generationsTotal: 3 });
    expect(done.runs.map(({ state, failed }) => [state, failed])).toEqual(Array(3).fill(['done', 0]));
    expect(done).toMatchObject({ configuration: 'my set.yaml', next: ['update', 'prune'] });
    expect(done.generations.map(({ number }) => number)).toEqual([3, 2, 1]);
    const names = ['widget/widget.v1.0.0', 'widget/widget.v1.1.0'];
    const [third, second] = done.generations;
    expect(third?.differences[0]).toEqual({ kind: 'bundle', sign: 'removed', total: 2, names });
    expect(second?.differences[0]).toEqual({ kind: 'bundle', sign: 'added', total: 2, names });
    expect(third?.bytesRemoved).toBe(second?.bytesAdded);
    expect((second?.bytes ?? 0) - (second?.bytesAdded ?? 0)).toBe(
      (third?.bytes ?? 0) - (third?.bytesAdded ?? 0),
    );
  });

  it('reads the workspace again, and retries an incomplete run', async () => {
    await addIncompleteRun();
    const { state, next, runs } = await read();
    expect(state).toBe('incomplete');
    expect(next).toEqual(['retry']);
    expect(runs[0]).toMatchObject({
      ...{ images: 1, bytes: 2048, failed: 1, failures: [{ image: hostile, problem: 'not found' }] },
      verdicts: [{ status: 'verified', images: 1 }],
    });
  });

  it('refuses a missing workspace, a damaged lock, and a catalog', async () => {
    const missing = await sandbox.run(['view', '--mirror', 'absent']);
    expect(missing).toMatchObject({ code: 1, stdout: '' });
    expect(missing.stderr).toContain('absent/working-dir: no mirror runs found');
    await sandbox.write({ 'broken/working-dir/generations/000001-20260131T123000Z.lock.json': '{"a"' });
    const broken = await sandbox.run(['view', '--mirror', 'file://broken']);
    expect(broken).toMatchObject({ code: 1, stdout: '' });
    expect(broken.stderr).toContain('broken/working-dir/generations/000001-20260131T123000Z.lock.json');
    const both = await sandbox.run(['view', 'catalog', '--mirror', 'space']);
    expect(both).toMatchObject({ code: 2, stdout: '' });
    expect(both.stderr).toContain('--mirror: shows no catalog');
  });
});

describe.skipIf(!hasBrowser)('the mirror in a browser', () => {
  const getPage = usePhone(() => url, '.generations > li');

  it('fits a phone, dark, with names as text', async () => {
    const page = getPage();
    await page.locator('.runs summary').first().focus();
    await page.keyboard.press('Enter');
    expect(await page.locator('.runs').innerText()).toContain(`${hostile}: not found`);
    await requirePhonePage(page);
  });

  it('has names for screen readers, and the command to copy', async () => {
    const tree = await getPage().locator('main').ariaSnapshot();
    for (const part of [
      `- heading "${destination}" [level=1]`,
      '- region "Runs"',
      '- table "Runs, newest first"',
      '- list "Generations"',
      `opmate mirror -c 'my set.yaml' --workspace file://space --retry-failed ${destination}`,
    ])
      expect(tree).toContain(part);
  });

  it.each(screens)('has no violations of axe-core: %s, %d px', async (colorScheme, width) => {
    const page = getPage();
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    expect(await findViolations(page)).toEqual([]);
  });
});
