import { readFileSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { renderDirectories, renderDirectory } from '../../../src/bundle/render-directories.js';
import { CancelledError } from '../../../src/core/errors.js';
import { computeDigest } from '../../../src/core/digest.js';

const fixtures = join(import.meta.dirname, '../../../fixtures/bundles');
const goldens = readFileSync(join(fixtures, 'SHA256SUMS.txt'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => line.split(/\s+/))
  .filter(([, source]) => source === 'directory')
  .map(([sha256, , path = '']) => ({ digest: `sha256:${sha256}`, directory: join(fixtures, path) }));

type Options = Parameters<typeof renderDirectories>[1];

/** Renders directories; returns package, name and digest of each result, at the index of its directory. */
async function renderAll(directories: string[], options: Options): Promise<unknown[]> {
  const results: unknown[] = [];
  await renderDirectories(directories, options, async ({ text, ...names }, index) => {
    expect(results[index]).toBeUndefined();
    results[index] = { ...names, digest: computeDigest(Buffer.from(text)) };
  });
  return results;
}

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'opmate-render-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

describe('bundle/render-directories', () => {
  it.each([1, 2, 4])('renders each directory once, with %d threads', async (threads) => {
    const many = [...goldens, ...goldens, ...goldens];
    const results = await renderAll(
      many.map(({ directory }) => directory),
      { format: 'json', threads },
    );
    expect(results).toMatchObject(many.map(({ digest }) => ({ digest })));
    expect(results[0]).toMatchObject({
      package: 'silicom-sts-operator',
      name: 'silicom-sts-operator.v0.0.1',
    });
  });

  it('renders to YAML, from a template, with a migration', async () => {
    const { text } = await renderDirectory(join(fixtures, 'microcks/0.3.0'), {
      format: 'yaml',
      imageTemplate: 'img/{{.Package}}:{{.Version}}',
      migrateLevel: 'all',
    });
    const yaml = Buffer.from(text).toString();
    expect(yaml).toMatch(/^---\nimage: img\/microcks:0\.3\.0\nname: microcks-operator\.v0\.3\.0\n/);
    expect(yaml).toContain('type: olm.csv.metadata\n');
    expect(yaml).not.toContain('olm.bundle.object');
  });

  it('throws the error of the first directory that fails', async () => {
    const good = goldens.map(({ directory }) => directory);
    const broken = join(root, 'broken');
    await cp(good[0] as string, broken, { recursive: true });
    await rm(join(broken, 'metadata/annotations.yaml'));
    const directories = [...good, broken, ...good, join(root, 'none')];
    await expect(renderAll(directories, { format: 'json', threads: 2 })).rejects.toThrow(
      `${broken}: Could not find annotations file`,
    );
    await expect(renderAll([], { format: 'json' })).resolves.toEqual([]);
  });

  it('stops when it is cancelled', async () => {
    const directories = goldens.map(({ directory }) => directory);
    const before = renderAll(directories, { format: 'json', signal: AbortSignal.abort() });
    await expect(before).rejects.toThrow(CancelledError);
    const controller = new AbortController();
    const during = renderAll(directories, { format: 'json', signal: controller.signal });
    controller.abort();
    await expect(during).rejects.toThrow(CancelledError);
  });
});
