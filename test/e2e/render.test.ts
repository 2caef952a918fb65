import { createHash } from 'node:crypto';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import path from 'node:path';
import { loadAll } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openLayout } from '../../src/oci/layout/layout.js';
import { pushImage } from '../../src/oci/image/image-builder.js';
import { bundlesDirectory, useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { widgetCatalog } from './catalogs.js';
import { makeBundleImage, makeCatalogImage, packLayout, serveBuilt, storeImage } from './images.js';

const sandbox = useSandbox();
const digestOfText = (text: string): string => createHash('sha256').update(text).digest('hex');
const bundle = (name: string): string => path.join(bundlesDirectory, name);

/** The checksum of what `opm render` writes for a bundle directory. */
async function recordedSum(name: string): Promise<string | undefined> {
  const text = await readFile(bundle('SHA256SUMS.txt'), 'utf8');
  return new RegExp(`^(\\w+)  directory  ${name}$`, 'm').exec(text)?.[1];
}

/** Blobs as tools split the output: a closing brace at the start of a line ends one. */
function blobsOf(stdout: string): { schema: string; name: string; package?: string; image?: string }[] {
  return stdout
    .split(/(?<=\n}\n)(?={)/)
    .filter((text) => text !== '')
    .map((text) => JSON.parse(text) as { schema: string; name: string });
}

describe('opmate render', () => {
  it('renders a bundle directory in the bytes of opm', async () => {
    for (const name of ['microcks/0.2.1', 'skupper-operator/1.9.0']) {
      const { code, stdout, stderr } = await sandbox.run(['render', bundle(name)]);
      expect({ code, stderr, sum: digestOfText(stdout) }).toEqual({
        code: 0,
        stderr: '',
        sum: await recordedSum(name),
      });
    }
  });

  it('renders many references concurrently, in one order', async () => {
    const names = ['microcks/0.3.0', 'skupper-operator/1.8.2', 'microcks/0.2.1'].map(bundle);
    const one = await sandbox.run(['render', ...names]);
    const other = await sandbox.run(['render', ...names.reverse()]);
    expect(blobsOf(one.stdout).map((blob) => blob.name)).toEqual([
      'microcks-operator.v0.2.1',
      'microcks-operator.v0.3.0',
      'skupper-operator.v1.8.2',
    ]);
    const sorted = (text: string): string[] => text.split(/(?<=\n}\n)(?={)/).sort();
    expect(sorted(other.stdout)).toEqual(sorted(one.stdout));
  });

  it('renders a catalog directory idempotently', async () => {
    await sandbox.write({ 'catalog/widget.json': widgetCatalog });
    const first = await sandbox.run(['render', 'catalog']);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(blobsOf(first.stdout)).toHaveLength(7);
    await sandbox.write({ 'again/catalog.json': first.stdout });
    expect(await sandbox.run(['render', 'again'])).toEqual(first);
  });

  it('sorts equal channels, bundles and related images of a package as sort.Slice of Go does', async () => {
    const count = (length: number): number[] => Array.from({ length }, (_, index) => index);
    const blobs = [
      { schema: 'olm.package', name: 'p', defaultChannel: 'a' },
      ...count(20).map((i) => ({
        ...{ schema: 'olm.channel', package: 'p', name: 'cab'[(i * 7) % 3] },
        entries: [{ name: `p.v${i}` }],
      })),
      ...count(15).map((i) => ({
        ...{ schema: 'olm.bundle', package: 'p', name: 'ba'[(i * 5) % 2], image: `i${i}` },
        properties: [{ type: 'olm.package', value: { packageName: 'p', version: `1.0.${i}` } }],
        relatedImages: count(14).map((k) => ({ name: `r${k}`, image: k % 3 === 0 ? 'x' : 'y' })),
      })),
    ];
    await sandbox.write({ 'ties/c.json': blobs.map((blob) => JSON.stringify(blob)).join('\n') });
    const { stdout } = await sandbox.run(['render', 'ties']);
    const rendered = blobsOf(stdout) as {
      schema: string;
      name: string;
      image: string;
      entries: { name: string }[];
      relatedImages: { name: string }[];
    }[];
    const channels = rendered.filter(({ schema }) => schema === 'olm.channel');
    const bundles = rendered.filter(({ schema }) => schema === 'olm.bundle');
    // Recorded with opm.
    expect(channels.map(({ name, entries }) => `${name}${entries[0]?.name.slice(3)}`).join(' ')).toBe(
      'a7 a1 a19 a16 a4 a13 a10 b5 b8 b11 b14 b17 b2 c9 c6 c12 c0 c15 c3 c18',
    );
    expect(bundles.map(({ name, image }) => `${name}${image.slice(1)}`).join(' ')).toBe(
      'a9 a7 a13 a3 a11 a5 a1 b4 b6 b0 b10 b8 b12 b2 b14',
    );
    expect(bundles[0]?.relatedImages.map(({ name }) => name).join(' ')).toBe(
      'r6 r12 r9 r3 r0 r4 r8 r5 r1 r2 r10 r11 r7 r13',
    );
  });

  it('writes YAML with the same blobs', async () => {
    await sandbox.write({ 'catalog/widget.json': widgetCatalog });
    const json = await sandbox.run(['render', 'catalog']);
    const yaml = await sandbox.run(['render', 'catalog', '-o', 'yaml']);
    expect(yaml.stdout).toMatch(/^---\n/);
    expect(loadAll(yaml.stdout)).toEqual(blobsOf(json.stdout));
    await sandbox.write({ 'as-yaml/catalog.yaml': yaml.stdout });
    expect((await sandbox.run(['render', 'as-yaml'])).stdout).toBe(json.stdout);
  });

  it('migrates on request, to a level or completely', async () => {
    const types = async (...flags: string[]): Promise<string[]> => {
      // What has no image keeps its objects, whatever the level.
      const image = ['--alpha-image-ref-template', 'registry.test/microcks:v{{.Version}}'];
      const { stdout } = await sandbox.run(['render', bundle('microcks/0.3.0'), ...image, ...flags]);
      const [blob] = blobsOf(stdout) as unknown as { properties: { type: string }[] }[];
      return [...new Set(blob?.properties.map(({ type }) => type))];
    };
    const whole = await types();
    expect(whole).toContain('olm.bundle.object');
    expect(await types('--migrate-level', 'none')).toEqual(whole);
    for (const flags of [['--migrate'], ['--migrate-level=bundle-object-to-csv-metadata']]) {
      const migrated = await types(...flags);
      expect(migrated).toContain('olm.csv.metadata');
      expect(migrated).not.toContain('olm.bundle.object');
    }
  });

  it('sets the images of bundle directories with a template', async () => {
    const template = 'registry.test/{{.Package}}-bundle:v{{.Version}}';
    const args = ['render', bundle('microcks/0.3.0'), '--alpha-image-ref-template', template];
    const { code, stdout } = await sandbox.run(args);
    expect(code).toBe(0);
    expect(blobsOf(stdout)[0]?.image).toBe('registry.test/microcks-bundle:v0.3.0');
    const broken = await sandbox.run([
      'render',
      bundle('microcks/0.3.0'),
      '--alpha-image-ref-template',
      '{{.',
    ]);
    expect(broken).toMatchObject({ code: 1, stdout: '' });
    expect(broken.stderr).toMatch(/template/);
  });

  it('shows alpha flags and commands only with HELP_ALPHA', async () => {
    const hidden = await sandbox.run(['render', '--help']);
    const shown = await sandbox.run(['render', '--help'], { env: { HELP_ALPHA: 'true' } });
    expect(hidden.stdout).not.toContain('--alpha-image-ref-template');
    expect(shown.stdout).toContain('--alpha-image-ref-template');
    expect((await sandbox.run(['--help'])).stdout).not.toMatch(/^ {2}alpha/m);
    expect((await sandbox.run(['--help'], { env: { HELP_ALPHA: 'true' } })).stdout).toMatch(/^ {2}alpha/m);
  });

  it.each([
    [['--migrate', '--migrate-level', 'none'], '--migrate'],
    [['--migrate-level', 'everything'], 'unknown migration level "everything"'],
    [['-o', 'xml'], 'invalid --output value "xml", expected (json|yaml)'],
    [['-o', 'mermaid'], 'invalid --output value "mermaid", expected (json|yaml)'],
    [['--use-http', '--skip-tls-verify'], '--use-http and --skip-tls-verify cannot both be true'],
  ])('refuses %j', async (flags, message) => {
    const { code, stdout, stderr } = await sandbox.run(['render', bundle('microcks/0.3.0'), ...flags]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^ +at /m);
  });

  it('prints nothing if one of many references fails, and names it', async () => {
    const { code, stdout, stderr } = await sandbox.run(['render', bundle('microcks/0.3.0'), 'nowhere/x']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('nowhere/x');
  });

  it('follows a link to a directory, and reads a directory whose name looks like an image', async () => {
    await sandbox.write({ 'catalog/widget.json': widgetCatalog });
    await mkdir(path.join(sandbox.work, 'quay.io'), { recursive: true });
    await symlink('../catalog', path.join(sandbox.work, 'quay.io', 'widget:v1'));
    const { stdout } = await sandbox.run(['render', 'quay.io/widget:v1']);
    expect(stdout).toBe((await sandbox.run(['render', 'catalog'])).stdout);
  });
});

describe('opmate render of images', () => {
  let registry: FaultRegistry;
  beforeAll(async () => {
    registry = await startFaultRegistry();
    serveBuilt(registry, 'ns/widget', 'v1', await makeCatalogImage({ 'widget/catalog.json': widgetCatalog }));
    serveBuilt(registry, 'ns/microcks', 'v0.3.0', await makeBundleImage('microcks/0.3.0'));
  });
  afterAll(() => registry.close());

  it('renders a bundle image under the given reference', async () => {
    const reference = `${registry.host}/ns/microcks:v0.3.0`;
    const { code, stdout, stderr } = await sandbox.run(['render', '--use-http', reference]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [blob] = blobsOf(stdout);
    expect(blob).toMatchObject({ name: 'microcks-operator.v0.3.0', image: reference });
  });

  it('renders the same catalog from a registry, a layout and archives', async () => {
    await sandbox.write({ 'catalog/widget.json': widgetCatalog });
    const image = await makeCatalogImage({ 'widget/catalog.json': widgetCatalog });
    const layout = path.join(sandbox.work, 'layout');
    await storeImage(layout, 'v1', image);
    await sandbox.write({ 'widget.tar': await packLayout(layout) });
    const expected = await sandbox.run(['render', 'catalog']);
    const references = [
      `${registry.host}/ns/widget:v1`,
      `docker://${registry.host}/ns/widget:v1`,
      `${registry.host}/ns/widget@${image.descriptor.digest}`,
      `${registry.host}/ns/widget:other@${image.descriptor.digest}`,
      'oci:layout:v1',
      'oci:layout',
      `oci:${layout}@${image.descriptor.digest}`,
      'oci-archive:widget.tar',
      'oci-archive:widget.tar:v1',
    ];
    const results = await Promise.all(references.map((name) => sandbox.run(['render', '--use-http', name])));
    for (const [i, result] of results.entries())
      expect([references[i], result]).toEqual([references[i], expected]);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('renders catalogs and bundles of all kinds of sources together', async () => {
    await sandbox.write({ 'catalog/widget.json': widgetCatalog });
    const args = ['catalog', `${registry.host}/ns/microcks:v0.3.0`, bundle('skupper-operator/1.9.0')];
    const { code, stdout } = await sandbox.run(['render', '--use-http', ...args]);
    expect(code).toBe(0);
    const blobs = blobsOf(stdout);
    expect(blobs.filter(({ schema }) => schema === 'olm.bundle')).toHaveLength(6);
    expect(new Set(blobs.map((blob) => blob.package ?? blob.name))).toEqual(
      new Set(['widget', 'microcks', 'skupper-operator']),
    );
  });

  it('requires the tag of an image, and a choice among several in a layout', async () => {
    const none = await sandbox.run(['render', '--use-http', `${registry.host}/ns/widget`]);
    expect(none).toMatchObject({ code: 1, stdout: '' });
    expect(none.stderr).toContain('missing tag or digest');
    const layout = await openLayout(path.join(sandbox.work, 'two'), { create: true });
    for (const tag of ['a', 'b']) {
      await pushImage(layout, tag, await makeCatalogImage({ [`${tag}.json`]: widgetCatalog }));
    }
    const several = await sandbox.run(['render', 'oci:two']);
    expect(several).toMatchObject({ code: 1, stdout: '' });
    expect(several.stderr).toMatch(/oci:two/);
    expect((await sandbox.run(['render', 'oci:two:b'])).code).toBe(0);
  });
});
