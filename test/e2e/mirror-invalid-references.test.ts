/** References in catalogs that no cluster can pull: one of them never stops the others. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { serveCatalogImage, serveOperatorSet } from '../support/operator-set.js';

const sandbox = useSandbox();
let source: FaultRegistry;
let target: Registry;
let host = '';
let run = 0;

beforeAll(async () => {
  source = await startFaultRegistry();
  await serveOperatorSet(source);
});
afterAll(() => source.close());
beforeEach(async () => {
  target = await startRegistry({ directory: path.join(sandbox.work, `target-${++run}`) });
  host = new URL(target.url).host;
  return () => target.close();
});

/** Serves a catalog with a healthy package and one with two bundles, of which the newer refers to `image`. */
async function serveWith(repository: string, image: string): Promise<void> {
  const blobs = ['good', 'bad'].flatMap((name) => {
    const versions = name === 'bad' ? ['1.0.0', '1.1.0'] : ['1.0.0'];
    return [
      { schema: 'olm.package', name, defaultChannel: 'stable' },
      {
        ...{ schema: 'olm.channel', package: name, name: 'stable' },
        entries: versions.map((version, i) => ({
          name: `${name}.v${version}`,
          ...(i > 0 && { replaces: `${name}.v${versions[i - 1]}` }),
        })),
      },
      ...versions.map((version) => ({
        ...{ schema: 'olm.bundle', name: `${name}.v${version}`, package: name },
        image: `${source.host}/acme/bundle:v${version}`,
        relatedImages: name === 'bad' && version === '1.1.0' ? [{ name: 'x', image }] : [],
        properties: [{ type: 'olm.package', value: { packageName: name, version } }],
      })),
    ];
  });
  await serveCatalogImage(source, repository, blobs);
}

async function mirror(name: string, config: string, ...args: string[]) {
  const header = 'kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n';
  await sandbox.write({ [`${name}.yaml`]: `${header}${config}` });
  const common = ['--config', `${name}.yaml`, '--workspace', `file://${name}`, '--use-http'];
  return sandbox.run(['mirror', ...common, ...args, `docker://${host}/ocm`]);
}

const invalid = [
  ['another transport', 'oci://quay.io/x/wasm-shim:v0.6.0', 'invalid reference format'],
  [
    'a transport that clusters do not accept',
    'docker://quay.io/x/wasm-shim:v0.6.0',
    'invalid reference format',
  ],
  ['a blank', ' quay.io/x/wasm-shim:v0.6.0', 'invalid reference format'],
  ['a variable', '${WASM-SHIM}', 'repository name must be lowercase'],
  ['upper case', 'quay.io/X/wasm-shim:v0.6.0', 'repository name must be lowercase'],
  ['a word', 'wasm-shim', 'missing tag or digest'],
  ['neither tag nor digest', 'quay.io/x/wasm-shim', 'missing tag or digest'],
] as const;

describe.each(invalid)('a reference with %s', (_kind, image, problem) => {
  const name = `cat${invalid.findIndex(([, text]) => text === image)}`;
  const operators = (): string =>
    `  operators:\n  - catalog: ${source.host}/acme/${name}:v1\n    full: true\n`;
  const catalog = (): string => `${host}/ocm/acme/${name}:v1`;
  beforeAll(() => serveWith(`acme/${name}`, image));

  it('stops a run with its package, bundle and field', async () => {
    const result = await mirror(`${name}-stop`, operators());
    expect(result).toMatchObject({ code: 1 });
    expect(result.stderr).toContain(
      `acme/${name}:v1: package "bad", bundle "bad.v1.1.0": relatedImages[0].image: image reference ${JSON.stringify(image)}: `,
    );
    expect(result.stderr).toContain(problem);
  });

  it.each([
    ['skip-bundle', ['bad.v1.0.0', 'good.v1.0.0']],
    ['skip-image', ['bad.v1.0.0', 'bad.v1.1.0', 'good.v1.0.0']],
  ])('is left out with --on-error %s, and its lock can be repeated', async (way, bundles) => {
    const result = await mirror(`${name}-${way}`, operators(), `--on-error=${way}`, '-o', 'json');
    expect(result).toMatchObject({ code: 4 });
    expect(JSON.parse(result.stdout)).toMatchObject({ failed: [{ source: image }] });
    const listed = async (): Promise<string[]> => {
      const rendered = await sandbox.run(['render', catalog(), '--use-http']);
      expect(rendered.stdout).not.toContain(JSON.stringify(image));
      return [...rendered.stdout.matchAll(/"schema": "olm.bundle",\n +"name": "([^"]+)"/g)].map(
        ([, of = '']) => of,
      );
    };
    expect((await listed()).sort()).toEqual(bundles);
    expect(await sandbox.run(['validate', catalog(), '--use-http'])).toMatchObject({ code: 0 });
    const lock = await readFile(
      path.join(sandbox.work, `${name}-${way}/working-dir/opmate.lock.json`),
      'utf8',
    );
    await target.close();
    target = await startRegistry({ directory: path.join(sandbox.work, `${name}-${way}-again`) });
    host = new URL(target.url).host;
    expect(await mirror(`${name}-${way}`, operators(), '--locked')).toMatchObject({ code: 0 });
    expect((await listed()).sort()).toEqual(bundles);
    expect(
      await readFile(path.join(sandbox.work, `${name}-${way}/working-dir/opmate.lock.json`), 'utf8'),
    ).toBe(lock);
  });

  it('does not matter below blockedImages', async () => {
    const packages = '    packages: [{name: bad}, {name: good}]\n';
    const blocked = '  blockedImages:\n  - name: (?i)wasm-shim\n';
    const result = await mirror(`${name}-blocked`, `${operators()}${packages}${blocked}`);
    expect(result.stderr).not.toContain('error');
    expect(result).toMatchObject({ code: 0 });
    expect(await sandbox.run(['validate', catalog(), '--use-http'])).toMatchObject({ code: 0 });
  });
});

describe('a bundle whose own image is no reference', () => {
  it('is left out with --on-error skip-image, and its catalog without any other', async () => {
    const blobs = [
      { schema: 'olm.package', name: 'only', defaultChannel: 'stable' },
      { schema: 'olm.channel', package: 'only', name: 'stable', entries: [{ name: 'only.v1.0.0' }] },
      {
        ...{ schema: 'olm.bundle', name: 'only.v1.0.0', package: 'only', image: 'oci://only' },
        properties: [{ type: 'olm.package', value: { packageName: 'only', version: '1.0.0' } }],
      },
    ];
    await serveCatalogImage(source, 'acme/only', blobs);
    const only = `  operators:\n  - catalog: ${source.host}/acme/only:v1\n    full: true\n`;
    const alone = await mirror('only', only, '--on-error=skip-image');
    expect(alone).toMatchObject({ code: 1 });
    expect(alone.stderr).toContain('no content remains');
    const both = await mirror(
      'both',
      `${only}  - catalog: ${source.host}/acme/index:v1\n`,
      '--on-error=skip-image',
    );
    expect(both).toMatchObject({ code: 4 });
    expect(await sandbox.run(['render', `${host}/ocm/acme/index:v1`, '--use-http'])).toMatchObject({
      code: 0,
    });
  });
});
