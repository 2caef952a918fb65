import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { loadAll } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltImage, buildImage, pushImage } from '../../src/oci/image/image-builder.js';
import { layerOf } from '../../src/archive/tar-writer.js';
import { openLayout } from '../../src/oci/layout/layout.js';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { makeCatalogImage, makeImage, serveBuilt } from './images.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
const digestOfImage = ({ manifest }: BuiltImage): string =>
  `sha256:${createHash('sha256').update(manifest).digest('hex')}`;

let source: FaultRegistry;
let target: Registry;
let targetHost = '';
let operand: BuiltImage;
let bundle: BuiltImage;
let catalogText = '';
let catalogImage: BuiltImage;

/** Everything that is served, as a registry that behaves has it. */
function serveAll(registry: FaultRegistry): void {
  serveBuilt(registry, 'acme/app', 'v1', operand);
  serveBuilt(registry, 'acme/bundle', 'v1', bundle);
  serveBuilt(registry, 'acme/catalog', 'v1', catalogImage);
}

const catalogOf = (host: string): string =>
  [
    { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
    { schema: 'olm.channel', package: 'widget', name: 'stable', entries: [{ name: 'widget.v1' }] },
    {
      schema: 'olm.bundle',
      name: 'widget.v1',
      package: 'widget',
      image: `${host}/acme/bundle:v1`,
      relatedImages: [{ name: 'app', image: `${host}/acme/app@${digestOfImage(operand)}` }],
      properties: [{ type: 'olm.package', value: { packageName: 'widget', version: '1.0.0' } }],
    },
  ]
    .map((blob) => `${JSON.stringify(blob)}\n`)
    .join('');

const catalogRef = (): string => `${source.host}/acme/catalog:v1`;
const mirror = (...args: string[]) => sandbox.run(['catalog', 'mirror', ...args, '--insecure']);
const manifestAt = async (
  host: string,
  repository: string,
  reference: string,
): Promise<string | undefined> => {
  const answer = await fetch(`http://${host}/v2/${repository}/manifests/${reference}`, {
    headers: { accept: 'application/vnd.oci.image.manifest.v1+json' },
  });
  return answer.ok ? await answer.text() : undefined;
};
const tagsAt = async (host: string): Promise<Record<string, string[]>> => {
  const { repositories } = (await (await fetch(`http://${host}/v2/_catalog`)).json()) as {
    repositories: string[];
  };
  const lists = repositories.map(async (name) => {
    const answer = (await (await fetch(`http://${host}/v2/${name}/tags/list`)).json()) as { tags: string[] };
    return [name, answer.tags] as const;
  });
  return Object.fromEntries(await Promise.all(lists));
};

beforeAll(async () => {
  source = await startFaultRegistry();
  operand = await makeImage({ files: { 'bin/app': 'app '.repeat(5000) } });
  bundle = await makeImage({ files: { 'manifests/csv.yaml': 'kind: x' } });
  catalogText = catalogOf(source.host);
  catalogImage = await makeCatalogImage({ 'widget/catalog.json': catalogText });
  serveAll(source);
  target = await startRegistry({ directory: at('target') });
  targetHost = new URL(target.url).host;
});

afterAll(async () => {
  await source.close();
  await target.close();
});

describe('opmate catalog mirror', () => {
  it('copies a catalog with all its images, and writes the cluster manifests', async () => {
    const result = await mirror(catalogRef(), `${targetHost}/olm`, '--to-manifests=out');
    expect(result).toMatchObject({ code: 0 });
    const hash = /olm\/acme-app:([0-9a-f]+)/.exec(result.stdout)?.[1] as string;
    expect(result.stdout.split('\n').sort()).toEqual(
      [
        '',
        `${digestOfImage(operand)} ${targetHost}/olm/acme-app:${hash}`,
        `${digestOfImage(bundle)} ${targetHost}/olm/acme-bundle:v1`,
        `${digestOfImage(catalogImage)} ${targetHost}/olm/acme-catalog:v1`,
      ].sort(),
    );
    expect(await manifestAt(targetHost, 'olm/acme-app', hash)).toBe(operand.manifest.toString());
    expect(await manifestAt(targetHost, 'olm/acme-app', digestOfImage(operand))).toBeDefined();
    expect((await readdir(at('out'))).sort()).toEqual([
      'catalogSource.yaml',
      'imageContentSourcePolicy.yaml',
      'imageDigestMirrorSet.yaml',
      'mapping.txt',
    ]);
    expect(await readFile(at('out/catalogSource.yaml'), 'utf8')).toContain(
      `image: ${targetHost}/olm/acme-catalog:v1`,
    );
    expect(await readFile(at('out/imageDigestMirrorSet.yaml'), 'utf8')).toContain(
      `    - ${targetHost}/olm/acme-app\n    source: ${source.host}/acme/app\n`,
    );
    expect(result.stderr).toContain('3 images to mirror, itself included');
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('sends nothing on the second run', async () => {
    const before = source.requests.length;
    const result = await mirror(catalogRef(), `${targetHost}/olm`, '--to-manifests=out');
    expect(result).toMatchObject({ code: 0 });
    const blobs = source.requests.slice(before).filter(({ path: at }) => at.includes('/blobs/'));
    // The catalog itself is read again: its configuration and its layer.
    expect(blobs.every(({ path: at }) => at.includes('acme/catalog'))).toBe(true);
  });

  it('mirrors through files with the same tags and names', async () => {
    const out = await mirror(catalogRef(), 'file:///local/index', '--dir', 'disk', '--to-manifests=disk-out');
    expect(out).toMatchObject({ code: 0 });
    expect(await readdir(at('disk-out'))).toEqual(['mapping.txt']);
    const [, next = '', repeated] = /opmate catalog mirror (\S+) (.*) REGISTRY/.exec(out.stderr) ?? [];
    expect([next, repeated]).toEqual(['file://local/index/acme/catalog:v1', '--dir disk --insecure']);
    const before = source.requests.length;
    const back = await mirror(next, `${targetHost}/from-disk`, '--from-dir=disk', '--to-manifests=back-out');
    expect(back).toMatchObject({ code: 0 });
    expect(source.requests).toHaveLength(before);
    const direct = await readFile(at('out/mapping.txt'), 'utf8');
    const hash = /acme-app:([0-9a-f]+)/.exec(direct)?.[1] as string;
    expect(await manifestAt(targetHost, 'from-disk/acme-app', hash)).toBe(operand.manifest.toString());
    // Clusters ask for images by the names in the catalog.
    expect(await readFile(at('back-out/imageContentSourcePolicy.yaml'), 'utf8')).toContain(
      `    - ${targetHost}/from-disk/acme-app\n    source: ${source.host}/acme/app\n`,
    );
    const served = await startRegistry({ directory: at('disk/v2') });
    try {
      expect(Object.keys(await tagsAt(new URL(served.url).host)).sort()).toEqual([
        'local/index/acme/catalog',
        'local/index/acme/catalog/acme/app',
        'local/index/acme/catalog/acme/bundle',
      ]);
    } finally {
      await served.close();
    }
  });

  it('writes the mapping of an image that no registry can have', async () => {
    await sandbox.write({ 'odd/catalog.json': catalogOf('registry.example:99999') });
    const flags = ['--source-name', 'quay.io/acme/x:v1', '--manifests-only', '--to-manifests=odd-out'];
    expect(await mirror('odd', 'reg.example', ...flags)).toMatchObject({ code: 0 });
    expect(await readFile(at('odd-out/mapping.txt'), 'utf8')).toContain(
      'registry.example:99999/acme/bundle:v1=',
    );
  });

  it('writes mapping and manifests of a directory without a registry', async () => {
    await sandbox.write({ 'catalog/widget/catalog.json': catalogText });
    const flags = ['--source-name', 'quay.io/Acme/x', '--manifests-only'];
    expect(await mirror('catalog', 'reg.example', ...flags)).toMatchObject({ code: 1 });
    const before = source.requests.length;
    const named = [
      '--source-name',
      'quay.io/acme/my_index/v4.18:v1',
      '--manifests-only',
      '--to-manifests=named',
      '--poll-interval=30m',
    ];
    expect(await mirror('catalog', 'reg.example/olm', ...named)).toMatchObject({ code: 0, stdout: '' });
    expect(source.requests).toHaveLength(before);
    expect(await readFile(at('named/mapping.txt'), 'utf8')).toContain(
      'quay.io/acme/my_index/v4.18:v1=reg.example/olm/acme-my_index-v4.18:v1\n',
    );
    // A name that a cluster takes, where oc writes one that it refuses.
    const written = await readFile(at('named/catalogSource.yaml'), 'utf8');
    expect(written).toContain('name: my-index-v4.18\n');
    expect(written).toContain('updateStrategy:\n    registryPoll:\n      interval: 30m\n');
    expect(await readFile(at('named/imageDigestMirrorSet.yaml'), 'utf8')).toContain(
      'name: my-index-v4.18-0\n',
    );
    const copying = await mirror('catalog', 'reg.example/olm', '--source-name', 'quay.io/acme/c:v1');
    expect(copying).toMatchObject({ code: 1, stdout: '' });
    expect(copying.stderr).toContain('catalog: not an image, so it cannot be copied');
  });

  it('copies a catalog from a layout under the given name', async () => {
    await pushImage(await openLayout(at('layout'), { create: true }), 'v1', catalogImage);
    const named = ['--source-name', 'quay.io/acme/renamed:v7', '--to-manifests=layout-out'];
    const result = await mirror('oci:layout:v1', `${targetHost}/l`, ...named);
    expect(result).toMatchObject({ code: 0 });
    expect(await manifestAt(targetHost, 'l/acme-renamed', 'v7')).toBe(catalogImage.manifest.toString());
    expect((await readFile(at('layout-out/mapping.txt'), 'utf8')).split('\n')).toContain(
      `quay.io/acme/renamed:v7=${targetHost}/l/acme-renamed:v7`,
    );
  });

  it('warns about a registry mirror set without a target', async () => {
    const flags = ['--manifests-only', '--to-manifests=scoped', '--icsp-scope=registry'];
    const moved = await mirror(catalogRef(), 'reg.example/olm', ...flags);
    expect(moved.stderr).toContain('--icsp-scope registry: a cluster finds only what keeps its path');
    expect(await readFile(at('scoped/imageContentSourcePolicy.yaml'), 'utf8')).toContain(
      `  - mirrors:\n    - reg.example\n    source: ${source.host}\n`,
    );
    expect((await mirror(catalogRef(), 'reg.example', ...flags)).stderr).not.toContain('--icsp-scope');
  });

  it('names a catalog referenced by digest after its digest', async () => {
    const digest = digestOfImage(catalogImage);
    const flags = ['--manifests-only', '--to-manifests=by-digest'];
    expect(await mirror(`${source.host}/acme/catalog@${digest}`, 'reg.example', ...flags)).toMatchObject({
      code: 0,
    });
    expect(await readFile(at('by-digest/catalogSource.yaml'), 'utf8')).toContain(
      `image: reg.example/acme/catalog@${digest}\n`,
    );
    expect(await readFile(at('by-digest/mapping.txt'), 'utf8')).toMatch(
      /acme\/catalog@sha256:\w+=reg\.example\/acme\/catalog:[0-9a-f]{1,8}\n/,
    );
    expect(await readFile(at('by-digest/imageDigestMirrorSet.yaml'), 'utf8')).toContain(
      'reg.example/acme/catalog\n',
    );
  });

  it('unpacks the selected path of the image regardless of labels', async () => {
    const layer = await layerOf([
      { path: 'elsewhere/widget/catalog.json', content: Buffer.from(catalogText) },
    ]);
    serveBuilt(source, 'acme/odd', 'v1', await buildImage({ layers: [layer] }));
    const odd = `${source.host}/acme/odd:v1`;
    expect(await mirror(odd, 'reg.example', '--manifests-only')).toMatchObject({ code: 1 });
    const flags = ['--manifests-only', '--to-manifests=odd-out', '--path', '/elsewhere:unpacked'];
    expect(await mirror(odd, 'reg.example', ...flags)).toMatchObject({ code: 0 });
    expect(await readFile(at('unpacked/widget/catalog.json'), 'utf8')).toBe(catalogText);
    expect((await readFile(at('odd-out/mapping.txt'), 'utf8')).split('\n')).toHaveLength(4);
    expect(existsSync(at('unpacked.opmate'))).toBe(false);
  });

  it('checks images without copying them', async () => {
    const before = await tagsAt(targetHost);
    const result = await mirror(
      catalogRef(),
      `${targetHost}/dry`,
      '--dry-run=true',
      '--to-manifests=dry-out',
    );
    expect(result).toMatchObject({ code: 0 });
    expect(result.stdout).toContain(`${digestOfImage(bundle)} ${targetHost}/dry/acme-bundle:v1\n`);
    expect(await tagsAt(targetHost)).toEqual(before);
    expect(existsSync(at('dry-out/mapping.txt'))).toBe(true);
  });

  it.each([
    [['reg.example', '--max-components', '1'], '--max-components "1": a path needs at least 2 components'],
    [['reg.example', '--max-components=-1'], '--max-components "-1"'],
    [['reg.example', '--icsp-scope=cluster'], '--icsp-scope "cluster": expected repository or registry'],
    [['reg.example', '--max-idms-size=250001'], '--max-idms-size "250001"'],
    [['reg.example', '--path', 'x'], '--path "x": expected IN:OUT'],
    [['reg.example', '--index-filter-by-os', '('], 'not a regular expression'],
    [['reg.example/a:v1'], 'a destination has neither tag nor digest'],
    [['myhost:5000'], 'a destination has neither tag nor digest'],
    [['s3://bucket/x'], 's3:// is not supported'],
    [['reg.example', '--source-name', 'quay.io/a/b:v1'], 'no such file or directory'],
  ])('refuses %j', async (args, message) => {
    const result = await mirror(catalogRef(), ...args);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain(message);
  });

  it('refuses an index with an ambiguous platform, and lists the available ones', async () => {
    const images = ['amd64', 's390x'].map((architecture) =>
      makeCatalogImage({ 'c.json': catalogText }, { platform: { os: 'linux', architecture } }),
    );
    const [amd64, s390x] = (await Promise.all(images)) as [BuiltImage, BuiltImage];
    const manifests = [amd64, s390x].map((image, i) => {
      serveBuilt(source, 'acme/multi', `p${i}`, image);
      return {
        mediaType: 'application/vnd.oci.image.manifest.v1+json',
        digest: digestOfImage(image),
        size: image.manifest.length,
        platform: { os: 'linux', architecture: i === 0 ? 'amd64' : 's390x' },
      };
    });
    const index = { schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', manifests };
    source.serveManifest('acme/multi', 'v1', JSON.stringify(index), index.mediaType);
    const multi = `${source.host}/acme/multi:v1`;
    const refused = await mirror(multi, 'reg.example', '--manifests-only', '--index-filter-by-os=linux');
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toContain('2 of its platforms match linux: linux/amd64, linux/s390x');
    // All platforms are copied, whichever was read.
    const result = await mirror(multi, `${targetHost}/m`, '--filter-by-os', 's390x', '--to-manifests=multi');
    expect(result).toMatchObject({ code: 0 });
    expect(await manifestAt(targetHost, 'm/acme-multi', digestOfImage(amd64))).toBe(
      amd64.manifest.toString(),
    );
  });

  it('lists images that were not copied, with exit code 4', async () => {
    const lost = catalogText
      .replace('acme/bundle:v1', 'acme/gone:v1')
      .replace('"name":"app"', '"name":"App","x":1');
    const odd = `${JSON.stringify({ schema: 'x', image: 'Not/An/Image' })}\n`;
    const image = await makeCatalogImage({ 'c.json': lost + odd });
    serveBuilt(source, 'acme/lossy', 'v1', image);
    const result = await mirror(
      `${source.host}/acme/lossy:v1`,
      `${targetHost}/lossy`,
      '--to-manifests=lossy',
    );
    expect(result.code).toBe(4);
    expect(result.stderr).toContain(`${source.host}/acme/gone:v1: not found, skipped`);
    expect(result.stderr).toContain('image reference "Not/An/Image"');
    expect(result.stderr).toContain('2 images not mirrored: 1 not found, 1 invalid');
    expect(existsSync(at('lossy/mapping.txt'))).toBe(true);
    const strict = await mirror(
      `${source.host}/acme/lossy:v1`,
      `${targetHost}/strict`,
      '--continue-on-error=false',
      '--to-manifests=strict',
    );
    expect(strict.code).toBe(1);
    expect(existsSync(at('strict'))).toBe(false);
  });

  it('leaves nothing behind when interrupted, and continues on the next run', async () => {
    const hanging = await startFaultRegistry();
    try {
      serveBuilt(hanging, 'acme/app', 'v1', operand);
      serveBuilt(hanging, 'acme/bundle', 'v1', bundle);
      const image = await makeCatalogImage({ 'c.json': catalogOf(hanging.host) });
      serveBuilt(hanging, 'acme/catalog', 'v1', image);
      let asked = (): void => undefined;
      const reached = new Promise<void>((resolve) => (asked = resolve));
      const [blob] = bundle.layers;
      const rule = { method: 'GET', path: `/v2/acme/bundle/blobs/${blob?.descriptor.digest}` };
      hanging.on({
        ...rule,
        times: 1,
        respond: () => {
          asked();
          return { hang: true };
        },
      });
      const args = [
        `${hanging.host}/acme/catalog:v1`,
        `${targetHost}/stopped`,
        '--to-manifests=stopped',
        '--insecure',
      ];
      const running = sandbox.start(['catalog', 'mirror', ...args]);
      await reached;
      expect(await running.stop('SIGINT')).toMatchObject({ code: 130, stdout: '' });
      expect(existsSync(at('stopped'))).toBe(false);
      expect(await sandbox.leftovers()).toEqual([]);
      expect(await manifestAt(targetHost, 'stopped/acme-catalog', 'v1')).toBeUndefined();
      expect(await sandbox.run(['catalog', 'mirror', ...args])).toMatchObject({ code: 0 });
      expect(await manifestAt(targetHost, 'stopped/acme-catalog', 'v1')).toBe(image.manifest.toString());
    } finally {
      await hanging.close();
    }
  });

  it('warns about repositories with one target, and refuses a tag for two images before copying', async () => {
    const twin = (tag: string) => `${JSON.stringify({ schema: 'x', image: `quay.io/acme/bundle:${tag}` })}\n`;
    await sandbox.write({ 'twins/c.json': catalogText + twin('v9') });
    const flags = ['--source-name', 'quay.io/acme/c:v1', '--manifests-only', '--to-manifests=twins-out'];
    const shared = await mirror('twins', 'reg.example', ...flags, '--itms');
    expect(shared).toMatchObject({ code: 0 });
    expect(shared.stderr).toContain(
      `reg.example/acme/bundle: shared by ${source.host}/acme/bundle, quay.io/acme/bundle`,
    );
    expect(loadAll(await readFile(at('twins-out/imageTagMirrorSet.yaml'), 'utf8'))).toMatchObject([
      {
        kind: 'ImageTagMirrorSet',
        spec: {
          imageTagMirrors: expect.arrayContaining([
            { source: 'quay.io/acme/bundle', mirrors: ['reg.example/acme/bundle'] },
          ]) as object,
        },
      },
    ]);
    const quiet = await mirror('twins', 'reg.example', ...flags, '--merge-repositories');
    expect(quiet.stderr).not.toContain('shared by');
    await rm(at('twins-out'), { recursive: true });
    await sandbox.write({ 'twins/c.json': catalogText + twin('v1') });
    const refused = await mirror('twins', 'reg.example', ...flags);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toContain('reg.example/acme/bundle:v1: same target for');
    expect(existsSync(at('twins-out'))).toBe(false);
  });

  it.each([
    ['429', { status: 429, headers: { 'retry-after': '0' } }, 0],
    ['500', { status: 500 }, 0],
    ['a cut', { truncateAfter: 20 }, 0],
    ['other bytes', { body: Buffer.alloc(5000) }, 4],
  ])('ends in the same content after %s', async (name, respond, code) => {
    const host = `faulty-${name.replace(/\W/g, '')}`;
    const [blob] = operand.layers;
    const times = code === 0 ? 1 : Infinity;
    const faulty = await startFaultRegistry();
    try {
      const text = catalogOf(faulty.host);
      serveBuilt(faulty, 'acme/app', 'v1', operand);
      serveBuilt(faulty, 'acme/bundle', 'v1', bundle);
      serveBuilt(faulty, 'acme/catalog', 'v1', await makeCatalogImage({ 'c.json': text }));
      faulty.on({
        method: 'GET',
        path: `/v2/acme/app/blobs/${blob?.descriptor.digest}`,
        times,
        respond: 'truncateAfter' in respond ? { ...respond, body: blob?.bytes as Buffer } : respond,
      });
      const run = () =>
        mirror(
          `${faulty.host}/acme/catalog:v1`,
          `${targetHost}/${host}`,
          '--to-manifests',
          host,
          '--retry-timeout=5s',
        );
      const first = await run();
      expect(first.code).toBe(code);
      if (code !== 0) {
        // Nothing stands under a tag whose content is not there.
        expect((await tagsAt(targetHost))[`${host}/acme-app`]).toBeUndefined();
        serveBuilt(faulty, 'acme/app', 'v1', operand);
        faulty.serveBlob('acme/app', blob?.bytes as Buffer);
        expect(await run()).toMatchObject({ code: 0 });
      }
      expect(await manifestAt(targetHost, `${host}/acme-app`, digestOfImage(operand))).toBe(
        operand.manifest.toString(),
      );
    } finally {
      await faulty.close();
    }
  });
});

describe('opmate mirror', () => {
  it('copies the images of a mapping from a file, stdin or arguments', async () => {
    const lines = `# first\n${source.host}/acme/app:v1=${targetHost}/f/app:one ${source.host}/acme/bundle:v1=${targetHost}/f/bundle\n`;
    await writeFile(at('mapping.txt'), lines);
    const fromFile = await sandbox.run(['mirror', '-f', 'mapping.txt', '--insecure']);
    expect(fromFile).toMatchObject({
      code: 0,
      stdout: `${digestOfImage(operand)} ${targetHost}/f/app:one\n${digestOfImage(bundle)} ${targetHost}/f/bundle:v1\n`,
    });
    const byDigest = `${source.host}/acme/app@${digestOfImage(operand)} ${targetHost}/g/app\n`;
    const fromInput = await sandbox.run(['mirror', '-f', '-', '--insecure'], { stdin: byDigest });
    expect(fromInput).toMatchObject({ code: 0, stdout: `${digestOfImage(operand)} ${targetHost}/g/app\n` });
    expect(await manifestAt(targetHost, 'g/app', digestOfImage(operand))).toBe(operand.manifest.toString());
    const all = await sandbox.run(['mirror', `${targetHost}/f/app=${targetHost}/h/app`, '--insecure']);
    expect(all).toMatchObject({ code: 0, stdout: `${digestOfImage(operand)} ${targetHost}/h/app:one\n` });
  });

  it('stops at the first failure unless told to continue', async () => {
    const lines = `${source.host}/acme/none:v1=${targetHost}/k/none:v1\n${source.host}/acme/app:v1=${targetHost}/k/app:v1\n`;
    await writeFile(at('part.txt'), lines);
    const run = (...flags: string[]) => sandbox.run(['mirror', '-f', 'part.txt', '--insecure', ...flags]);
    const stopped = await run();
    expect(stopped).toMatchObject({ code: 1, stdout: '' });
    expect(stopped.stderr).toContain(`${source.host}/acme/none:v1: not found`);
    const went = await run('--continue-on-error');
    expect(went).toMatchObject({ code: 4, stdout: `${digestOfImage(operand)} ${targetHost}/k/app:v1\n` });
    expect(await run('--skip-missing')).toMatchObject({ code: 0 });
  });

  it('accepts flags of oc, and reports those without effect', async () => {
    const line = `${source.host}/acme/app:v1=${targetHost}/flags/app:v1`;
    const flags = [
      '--filter-by-os=.*',
      '--keep-manifest-list=true',
      '--max-registry=2',
      '--skip-verification',
    ];
    const result = await sandbox.run([
      'mirror',
      ...flags,
      '--insecure=true',
      '--continue-on-error=false',
      line,
    ]);
    expect(result).toMatchObject({ code: 0 });
    expect(result.stderr).toContain('digests are still verified');
    const one = await sandbox.run(['mirror', '--filter-by-os=linux/amd64', line]);
    expect(one).toMatchObject({ code: 1, stdout: '' });
    expect(one.stderr).toContain('an image is copied with all its platforms');
  });

  it('reports errors with file and line', async () => {
    await mkdir(at('bad'), { recursive: true });
    await writeFile(at('bad/mapping.txt'), '\nquay.io/a/b:v1\n');
    const result = await sandbox.run(['mirror', '-f', 'bad/mapping.txt']);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain('bad/mapping.txt:2: "quay.io/a/b:v1" has no target');
    expect(await sandbox.run(['mirror'])).toMatchObject({ code: 1, stdout: '' });
  });
});

describe.skipIf(!hasDockerRegistry)('opmate catalog mirror, with docker-registry', () => {
  let registry: DockerRegistry;
  beforeAll(async () => {
    registry = await startDockerRegistry();
  });
  afterAll(() => registry.close());

  it('mirrors from one registry to the other and back', async () => {
    const there = await mirror(catalogRef(), `${registry.host}/olm`, '--to-manifests=there');
    expect(there).toMatchObject({ code: 0 });
    const back = there.stdout
      .trim()
      .split('\n')
      .map((line) => {
        const [digest, name] = line.split(' ') as [string, string];
        return `${name.replace(/:[^:/]+$/, '')}@${digest}=${targetHost}/back/${name.split('/').at(-1)}`;
      });
    const again = await sandbox.run(['mirror', '-f', '-', '--insecure'], { stdin: back.join('\n') });
    expect(again).toMatchObject({ code: 0 });
    const digests = (text: string): string[] => text.match(/sha256:\w+/g)?.sort() ?? [];
    expect(digests(again.stdout)).toEqual(digests(there.stdout));
  });
});
