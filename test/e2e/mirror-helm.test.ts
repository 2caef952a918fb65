import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, readdir, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { layerOf, writeTar } from '../../src/archive/tar-writer.js';
import { imageLabels } from '../../src/model/image-labels.js';
import { buildImage } from '../../src/oci/image/image-builder.js';
import { rawTar } from '../support/tar.js';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { type OperatorSet, serveOperatorSet } from '../support/operator-set.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
let source: FaultRegistry;
let operators: OperatorSet;

/** What the chart repository serves, by path. */
const served = new Map<string, Buffer>();
/** An address of which only the first half is sent. */
let held: { url: string; begun: () => void } | undefined;
const repository = createServer((request, response) => {
  const body = served.get(request.url ?? '');
  if (held !== undefined && body !== undefined && request.url === held.url) {
    response.writeHead(200, { 'content-length': body.length }).write(body.subarray(0, body.length / 2));
    held.begun();
    return;
  }
  response.writeHead(body === undefined ? 404 : 200).end(body);
});
let charts = '';

async function serveImage(name: string, tag: string): Promise<string> {
  const layer = await layerOf([{ path: `etc/${name}`, content: Buffer.from(name) }]);
  const image = await buildImage({ layers: [layer] });
  source.serveBlob(name, image.config);
  for (const { bytes } of image.layers) source.serveBlob(name, bytes);
  source.serveManifest(name, tag, image.manifest);
  return `${source.host}/${name}:${tag}`;
}

async function packChart(files: Record<string, string>, root = 'portal/'): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const entries = Object.entries(files).map(([name, text]) => ({
    path: root + name,
    content: Buffer.from(text),
  }));
  for await (const chunk of writeTar(entries)) chunks.push(chunk as Buffer);
  return gzipSync(Buffer.concat(chunks));
}

const skopeo = (...args: string[]) => promisify(execFile)('skopeo', args);
const about = (version: string): string => `apiVersion: v2\nname: portal\nversion: ${version}\n`;
const pod = (image: string, kind = 'Pod', annotations = ''): string =>
  `apiVersion: v1\nkind: ${kind}\nmetadata: {name: a${annotations}}\nspec: {containers: [{name: a, image: "${image}"}]}\n`;

beforeAll(async () => {
  source = await startFaultRegistry();
  operators = await serveOperatorSet(source);
  await new Promise<void>((resolve) => repository.listen(0, '127.0.0.1', resolve));
  charts = `http://127.0.0.1:${(repository.address() as AddressInfo).port}`;
  const main = await serveImage('acme/portal', 'v1');
  const hook = await serveImage('acme/hook', 'v1');
  served.set(
    '/charts/portal-1.0.0.tgz',
    await packChart({
      'Chart.yaml': about('1.0.0'),
      'values.yaml': `image: {repository: ${main.replace(/:v1$/, '')}, tag: v1}\n`,
      'templates/pod.yaml': pod('{{ .Values.image.repository }}:{{ .Values.image.tag }}'),
      'templates/hook.yaml': pod(hook, 'Pod', ', annotations: {helm.sh/hook: pre-install}'),
    }),
  );
  const index = {
    apiVersion: 'v1',
    entries: { portal: [{ name: 'portal', version: '1.0.0', urls: ['portal-1.0.0.tgz'] }] },
  };
  served.set('/charts/index.yaml', Buffer.from(JSON.stringify(index)));
});
afterAll(async () => {
  repository.close();
  await source.close();
});

const head = 'kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n';
const fromRepository = (url = `${charts}/charts`, version = '"1.0.0"'): string =>
  `  helm:\n    repositories:\n    - name: main\n      url: ${url}\n      charts:\n      - name: portal\n        version: ${version}\n`;
const mirror = (name: string, ...args: string[]) =>
  sandbox.run(['mirror', '--use-http', ...args, '--workspace', `file://${name}`]);
const dryRun = (name: string) =>
  mirror(name, '--config', `${name}.yaml`, 'docker://127.0.0.1:1/m', '--dry-run');
const mappingOf = async (name: string): Promise<string> =>
  readFile(at(name, 'working-dir', 'dry-run', 'mapping.txt'), 'utf8');

describe('opmate mirror of charts', () => {
  describe.runIf(hasDockerRegistry)('to a registry', () => {
    let target: DockerRegistry;
    beforeEach(async () => {
      target = await startDockerRegistry();
      return () => target.close();
    });
    const inspect = async (name: string) => {
      const image = `docker://${target.host}/m/${name}`;
      const { stdout } = await skopeo('inspect', '--raw', '--tls-verify=false', image);
      return JSON.parse(stdout) as {
        config: { mediaType: string };
        layers: { mediaType: string; digest: string }[];
      };
    };

    it('mirrors charts and operators through an archive, and pushes charts on request', async () => {
      await sandbox.write({
        'all.yaml': `${head}  operators:\n  - catalog: ${operators.catalog}\n${fromRepository()}`,
      });
      const packed = await mirror('disk', '--config', 'all.yaml', 'file://carry');
      expect(packed).toMatchObject({ code: 0 });
      const own = served.get('/charts/portal-1.0.0.tgz') as Buffer;
      served.delete('/charts/portal-1.0.0.tgz');
      const to = `docker://${target.host}/m`;
      const plain = await mirror('far', '--from', 'file://carry', '--config', 'all.yaml', to);
      served.set('/charts/portal-1.0.0.tgz', own);
      expect(plain).toMatchObject({ code: 0 });
      expect((await inspect('acme/portal:v1')).config.mediaType).toContain('image.config');
      await inspect('acme/hook:v1');
      await expect(inspect('helm/main/portal:1.0.0')).rejects.toThrow();
      const statusAt = ['mirror', 'status', to, '--use-http', '--workspace', 'file://disk'];
      expect(await sandbox.run(statusAt)).toMatchObject({ code: 0 });
      expect(await sandbox.run([...statusAt, '--helm-charts'])).toMatchObject({ code: 4 });
      const pushed = await mirror(
        'far',
        '--from',
        'file://carry',
        '--config',
        'all.yaml',
        to,
        '--helm-charts',
      );
      expect(pushed).toMatchObject({ code: 0 });
      const { config, layers } = await inspect('helm/main/portal:1.0.0');
      expect(config.mediaType).toBe('application/vnd.cncf.helm.config.v1+json');
      expect(layers.map(({ mediaType }) => mediaType)).toEqual([
        'application/vnd.cncf.helm.chart.content.v1.tar+gzip',
      ]);
      expect(await sandbox.run([...statusAt, '--helm-charts'])).toMatchObject({ code: 0 });
      const status = await sandbox.run(['mirror', 'status', 'file://carry', '--use-http']);
      expect(status).toMatchObject({ code: 0 });
    });

    it('mirrors charts and operators through an archive, verified with skopeo', async () => {
      await sandbox.write({
        'trip.yaml': `${head}  operators:\n  - catalog: ${operators.catalog}\n    full: true\n${fromRepository()}`,
      });
      expect(await mirror('trip', '--config', 'trip.yaml', 'file://trip')).toMatchObject({ code: 0 });
      expect(await sandbox.run(['archive', 'verify', 'trip'])).toMatchObject({ code: 0 });
      const to = `docker://${target.host}/m`;
      const args = ['--from', 'trip', '--config', 'trip.yaml', to, '--helm-charts'];
      expect(await mirror('trip-far', ...args)).toMatchObject({ code: 0 });
      const copied = at('copied');
      for (const [name, digest] of operators.digests) {
        const [repository = '', version = ''] = name.split(':');
        const tags: Record<string, string> = { 'acme/bundle': `v${version}`, 'acme/index': version };
        const tag = tags[repository] ?? digest.replace(':', '-');
        const image = `docker://${target.host}/m/${repository}:${tag}`;
        const { stdout } = await skopeo('inspect', '--tls-verify=false', image);
        expect((JSON.parse(stdout) as { Digest: string }).Digest).toBe(digest);
        // Every blob is read, and verified.
        await skopeo('copy', '--src-tls-verify=false', image, `dir:${copied}`);
      }
      const chart = `docker://${target.host}/m/helm/main/portal:1.0.0`;
      await skopeo('copy', '--src-tls-verify=false', chart, `dir:${at('chart')}`);
      const own = served.get('/charts/portal-1.0.0.tgz') as Buffer;
      const name = createHash('sha256').update(own).digest('hex');
      expect(await readFile(at('chart', name))).toEqual(own);
      const status = ['mirror', 'status', to, '--use-http', '--workspace', 'file://trip', '--helm-charts'];
      expect(await sandbox.run(status)).toMatchObject({ code: 0 });
    });

    it('reads charts from registries, by version or constraint', async () => {
      const first = { 'first.yaml': `${head}${fromRepository()}`, 'push.yaml': `${head}${fromRepository()}` };
      await sandbox.write(first);
      const from = `docker://${target.host}/m`;
      expect(await mirror('push', '-c', 'push.yaml', from, '--helm-charts')).toMatchObject({ code: 0 });
      const oci = (version: string, name = 'portal'): string =>
        `${head}  helm:\n    repositories:\n    - name: main\n      url: oci://${target.host}/m/helm/main\n      charts:\n      - name: ${name}\n        version: ${version}\n`;
      await sandbox.write({
        'oci.yaml': oci('^1.0.0'),
        'none.yaml': oci('2.0.0'),
        'image.yaml': oci('v1', '../../acme/portal'),
      });
      const expected = await dryRun('push').then(() => mappingOf('push'));
      expect(await dryRun('oci')).toMatchObject({ code: 0 });
      expect(await mappingOf('oci')).toBe(expected);
      expect((await dryRun('none')).stderr).toContain('chart "portal": version "2.0.0" not found');
      expect((await dryRun('image')).stderr).toContain('"../../acme/portal" is not a chart name');
      await sandbox.write({
        'image.yaml': oci('v1').replace('/m/helm/main', '/m/acme'),
      });
      expect((await dryRun('image')).stderr).toContain('is not a chart');
      // Over disk, from the archive alone.
      expect(await mirror('oci', '-c', 'oci.yaml', 'file://oci-disk')).toMatchObject({ code: 0 });
      const args = ['--from', 'oci-disk', '-c', 'oci.yaml', `docker://${target.host}/far`];
      expect(await mirror('oci-far', ...args)).toMatchObject({ code: 0 });
    });

    it('computes images of charts from an archive with a base', async () => {
      await sandbox.write({
        'base.yaml': `${head}${fromRepository()}`,
        'later.yaml': `${head}${fromRepository()}  additionalImages:\n  - name: ${operators.catalog}\n`,
      });
      const to = `docker://${target.host}/m`;
      expect(await mirror('base', '-c', 'base.yaml', 'file://based')).toMatchObject({ code: 0 });
      expect(await mirror('base', '--from', 'based', '-c', 'base.yaml', to)).toMatchObject({ code: 0 });
      expect(
        await sandbox.run(['mirror', 'inventory', to, '--use-http', '--to', 'charts.json']),
      ).toMatchObject({ code: 0 });
      for (const [name, base] of [
        ['onto-archive', 'based'],
        ['onto-inventory', 'charts.json'],
      ] as const) {
        expect(await mirror(name, '-c', 'later.yaml', `file://${name}`, '--base', base)).toMatchObject({
          code: 0,
        });
        const far = await mirror(`${name}-far`, '--from', name, '-c', 'later.yaml', to);
        expect(far).toMatchObject({ code: 0 });
      }
      await inspect('acme/hook:v1');
      await inspect('acme/index:v1');
    });

    it('mirrors only the configured charts of an archive', async () => {
      await sandbox.write({
        'more.yaml': `${head}${fromRepository()}  additionalImages:\n  - name: ${operators.catalog}\n`,
        'less.yaml': `${head}${fromRepository()}`,
      });
      expect(await mirror('disk', '--config', 'more.yaml', 'file://carry2')).toMatchObject({ code: 0 });
      const args = ['--from', 'file://carry2', '--config'];
      const tags = async (prefix: string, repository: string): Promise<number> =>
        (await globalThis.fetch(`http://${target.host}/v2/${prefix}/acme/${repository}/tags/list`)).status;
      expect(await mirror('far2', ...args, 'less.yaml', `docker://${target.host}/less`)).toMatchObject({
        code: 0,
      });
      expect([await tags('less', 'hook'), await tags('less', 'index')]).toEqual([200, 404]);
      expect(await mirror('far3', ...args, 'more.yaml', `docker://${target.host}/more`)).toMatchObject({
        code: 0,
      });
      expect([await tags('more', 'hook'), await tags('more', 'index')]).toEqual([200, 200]);
    });

    it('mirrors charts with a lock', async () => {
      await sandbox.write({ 'lock.yaml': `${head}${fromRepository()}` });
      const to = `docker://${target.host}/m`;
      const plan = [
        'mirror',
        'plan',
        '--use-http',
        '-c',
        'lock.yaml',
        to,
        '--helm-charts',
        '--workspace',
        'file://locked',
      ];
      expect(await sandbox.run(plan)).toMatchObject({ code: 0 });
      expect(await mirror('locked', '--config', 'lock.yaml', '--locked', '--helm-charts', to)).toMatchObject({
        code: 0,
      });
      await inspect('helm/main/portal:1.0.0');
      await inspect('acme/hook:v1');
    });
  });

  it('lists images of charts to delete', async () => {
    await sandbox.write({ 'delete.yaml': `kind: DeleteImageSetConfiguration\ndelete:\n${fromRepository()}` });
    const args = [
      'mirror',
      'delete',
      '--use-http',
      '--generate',
      '-c',
      'delete.yaml',
      'docker://127.0.0.1:1/m',
      '--workspace',
      'file://gone',
    ];
    expect(await sandbox.run(args)).toMatchObject({ code: 0 });
    const list = await readFile(at('gone', 'working-dir', 'delete', 'delete-images.yaml'), 'utf8');
    expect(
      [...list.matchAll(/imageReference: (.*)\n {2}type: (.*)/g)].map(
        ([, image, type]) => `${image} ${type}`,
      ),
    ).toEqual([
      'docker://127.0.0.1:1/m/acme/hook:v1 helmImage',
      'docker://127.0.0.1:1/m/acme/portal:v1 helmImage',
    ]);
  });

  it('reads images from the text of a template that cannot be evaluated, with a warning', async () => {
    const image = `${source.host}/acme/portal:v1`;
    await mkdir(at('odd', 'templates'), { recursive: true });
    await sandbox.write({
      'odd/Chart.yaml': 'apiVersion: v2\nname: odd\nversion: 0.1.0\n',
      'odd/values.yaml': `image: ${image}\n`,
      'odd/templates/pod.yaml': `# {{ fromToml "" }}\n${pod('{{ .Values.image }}').replace('{name: a, image:', '\n  - name: a\n    image:').replace('}]}', ']')}`,
      'guess.yaml': `${head}  helm:\n    local:\n    - path: odd\n`,
    });
    const result = await dryRun('guess');
    expect(result.code).toBe(0);
    expect(result.stderr).toContain(
      'odd/templates/pod.yaml:1: not evaluated: function fromToml: TOML is not supported',
    );
    expect(await mappingOf('guess')).toContain(`docker://${image}=`);
  });

  it('renders charts with the values of the configuration, and refuses others than objects', async () => {
    await mkdir(at('tuned', 'templates'), { recursive: true });
    const chart = '  helm:\n    local:\n    - path: tuned\n';
    await sandbox.write({
      'tuned/Chart.yaml': 'apiVersion: v2\nname: tuned\nversion: 0.1.0\n',
      'tuned/values.yaml': 'image: {repository: quay.io/acme/tuned, tag: v1}\nproxy: {enabled: false}\n',
      'tuned/values.schema.json': '{"properties": {"image": {"properties": {"tag": {"type": "string"}}}}}',
      'tuned/templates/pod.yaml': pod('{{ .Values.image.repository }}:{{ .Values.image.tag }}'),
      'tuned/templates/proxy.yaml': `{{ if .Values.proxy.enabled }}${pod('quay.io/acme/proxy:v1')}{{ end }}`,
      'tuned.yaml': `${head}${chart}      values:\n        image: {tag: v2}\n        proxy: {enabled: true}\n`,
      'number.yaml': `${head}${chart}      values: {image: {tag: 2}}\n`,
      'list.yaml': `${head}${chart}      values: [1]\n`,
    });
    expect(await dryRun('tuned')).toMatchObject({ code: 0 });
    expect((await mappingOf('tuned')).replace(/=.*/gm, '')).toBe(
      'docker://quay.io/acme/proxy:v1\ndocker://quay.io/acme/tuned:v2\n',
    );
    const number = await dryRun('number');
    expect(number).toMatchObject({ code: 1 });
    expect(number.stderr).toMatch(/tuned: values.schema.json: .*tag/);
    const list = await dryRun('list');
    expect(list).toMatchObject({ code: 1 });
    expect(list.stderr).toContain('list.yaml:7:');
    expect(list.stderr).toContain('helm.local[0].values: expected an object');
  });

  it('names a template that fails, also if the run fails, and prefers rendered images to guesses from values', async () => {
    const image = `${source.host}/acme/portal:v1`;
    await mkdir(at('part', 'templates'), { recursive: true });
    const values = `global: {registry: "${source.host}"}\nimage: {repository: acme/portal, tag: v1}\nother: {repository: acme/side, tag: v2}\n`;
    const secret =
      'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  a: {{ .Values.nope.deeper | b64enc }}\n';
    await sandbox.write({
      'part/Chart.yaml': 'apiVersion: v2\nname: part\nversion: 0.1.0\n',
      'part/values.yaml': values,
      'part/templates/pod.yaml': pod(
        '{{ .Values.global.registry }}/{{ .Values.image.repository }}:{{ .Values.image.tag }}',
      ),
      'part/templates/secret.yaml': secret,
      'part.yaml': `${head}  helm:\n    local:\n    - path: part\n`,
      'clash.yaml': `${head}  helm:\n    local:\n    - path: part\n  additionalImages:\n  - name: quay.example.com/acme/portal:v1\n`,
    });
    const result = await dryRun('part');
    expect(result).toMatchObject({ code: 0 });
    const warning = 'part/templates/secret.yaml:5: not evaluated: ';
    expect(result.stderr).toContain(warning);
    const mapping = await mappingOf('part');
    expect(mapping).toContain(`docker://${image}=`);
    expect(mapping).toContain('docker://docker.io/acme/side:v2=');
    expect(mapping).not.toContain('docker.io/acme/portal');
    const clash = await dryRun('clash');
    expect(clash).toMatchObject({ code: 1 });
    expect(clash.stderr).toContain('same target for');
    expect(clash.stderr).toContain(warning);
  });

  it.each([
    [
      'a path that leads out',
      async () => gzipSync(rawTar([{ name: 'portal/../../etc/passwd', content: 'a' }])),
      'leads out|outside|not a path',
    ],
    ['no archive', async () => Buffer.from('no chart'), 'damaged tar archive'],
    [
      'its end cut off',
      async () => {
        const whole = await packChart({
          'Chart.yaml': about('1.0.0'),
          'templates/a.yaml': pod('a.example/a:1'),
        });
        return whole.subarray(0, whole.length - 20);
      },
      'unexpected end|truncated|damaged',
    ],
    ['a bomb', async () => gzipSync(Buffer.alloc(200 * 1024 * 1024)), 'unpacks to more than|expands to more'],
    ['no Chart.yaml', async () => packChart({ 'templates/a.yaml': 'a: 1' }), 'Chart.yaml: not found'],
    [
      'another name',
      async () => packChart({ 'Chart.yaml': 'name: other\nversion: 1.0.0\n' }),
      'holds chart "other"',
    ],
    [
      'aliases without end',
      async () => packChart({ 'Chart.yaml': about('1.0.0'), 'values.yaml': billionLaughs }),
      'values.yaml:1: yaml',
    ],
  ])('refuses a downloaded chart with %s', async (_what, make, problem) => {
    served.set('/bad/portal-1.0.0.tgz', await make());
    served.set('/bad/index.yaml', served.get('/charts/index.yaml') as Buffer);
    await sandbox.write({ 'bad.yaml': `${head}${fromRepository(`${charts}/bad`)}` });
    const result = await dryRun('bad');
    expect(result.code).toBe(1);
    expect(result.stderr).toMatch(new RegExp(problem));
  });

  it('refuses a chart with a wrong digest, and an invalid repository URL', async () => {
    const entry = (more: object) =>
      Buffer.from(
        JSON.stringify({
          entries: { portal: [{ version: '1.0.0', urls: ['../charts/portal-1.0.0.tgz'], ...more }] },
        }),
      );
    await sandbox.write({ 'digest.yaml': `${head}${fromRepository(`${charts}/digest/`)}` });
    served.set('/digest/index.yaml', entry({ digest: '0'.repeat(64) }));
    expect((await dryRun('digest')).stderr).toMatch(/expected sha256:0{64}, got sha256:/);
    served.set('/digest/index.yaml', entry({ urls: ['file:///etc/passwd'] }));
    expect((await dryRun('digest')).stderr).toContain('not an http or https URL');
  });

  it('reports invalid images of all bundles together with the problems of charts', async () => {
    const serveCatalog = async (name: string, images: readonly string[]): Promise<string> => {
      const blobs = [
        { schema: 'olm.package', name, defaultChannel: 'stable' },
        { schema: 'olm.channel', package: name, name: 'stable', entries: [{ name: `${name}.v1.0.0` }] },
        {
          ...{ schema: 'olm.bundle', package: name, name: `${name}.v1.0.0`, image: images[0] },
          relatedImages: images.slice(1).map((image) => ({ name: '', image })),
          properties: [{ type: 'olm.package', value: { packageName: name, version: '1.0.0' } }],
        },
      ];
      const content = Buffer.from(blobs.map((blob) => `${JSON.stringify(blob)}\n`).join(''));
      const layers = [await layerOf([{ path: 'configs/catalog.json', content }])];
      const image = await buildImage({ layers, labels: { [imageLabels.configs]: '/configs' } });
      source.serveBlob(name, image.config);
      for (const { bytes } of image.layers) source.serveBlob(name, bytes);
      source.serveManifest(name, 'v1', image.manifest);
      return `${source.host}/${name}:v1`;
    };
    const [one, two] = [
      await serveCatalog('one', ['quay.io/One/bundle:v1', 'quay.io/acme/Operand:v1']),
      await serveCatalog('two', ['quay.io/two/bundle:v1', 'docker-archive:operand.tar']),
    ];
    const catalogs = [`${source.host}/none:v1`, one, two];
    await sandbox.write({
      'invalid.yaml': `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
${catalogs.map((catalog) => `  - catalog: ${catalog}\n    full: true\n`).join('')}  helm:
    local:
    - path: charts/none
`,
    });
    const { code, stderr } = await sandbox.run([
      'mirror',
      '--use-http',
      '-c',
      'invalid.yaml',
      'file://invalid',
    ]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/none:v1: not found/);
    expect(stderr).toMatch(/chart charts\/none: /);
    expect(stderr).toMatch(/one:v1: package "one", bundle "one\.v1\.0\.0": .*"?quay\.io\/One\/bundle:v1/);
    expect(stderr).toMatch(/one:v1: package "one", bundle "one\.v1\.0\.0": .*quay\.io\/acme\/Operand:v1/);
    expect(stderr).toMatch(/two:v1: package "two", bundle "two\.v1\.0\.0": .*docker-archive:operand\.tar/);
  });

  it('leaves nothing behind when interrupted while a chart is fetched, and mirrors on the next run', async () => {
    await sandbox.write({ 'slow.yaml': `${head}${fromRepository(`${charts}/slow`)}` });
    served.set('/slow/index.yaml', served.get('/charts/index.yaml') as Buffer);
    const whole = served.get('/charts/portal-1.0.0.tgz') as Buffer;
    served.set('/slow/portal-1.0.0.tgz', whole);
    const temporary = at('temporary');
    await mkdir(temporary, { recursive: true });
    const args = ['mirror', '--use-http', '-c', 'slow.yaml', 'file://slow-disk'];
    let begun: () => void = () => undefined;
    const isBegun = new Promise<void>((resolve) => (begun = resolve));
    held = { url: '/slow/portal-1.0.0.tgz', begun };
    const run = sandbox.start(args, { env: { TMPDIR: temporary } });
    await isBegun;
    const stopped = await run.stop('SIGINT');
    held = undefined;
    expect(stopped).toMatchObject({ code: 130, stdout: '' });
    expect(await readdir(temporary)).toEqual([]);
    expect(await sandbox.run(args, { env: { TMPDIR: temporary } })).toMatchObject({ code: 0 });
    expect(await readdir(temporary)).toEqual([]);
  });

  it('refuses a link out of a local chart', async () => {
    await sandbox.write({
      'linked/Chart.yaml': 'name: linked\nversion: 0.1.0\n',
      'linked.yaml': `${head}  helm:\n    local:\n    - path: linked\n`,
    });
    await mkdir(at('linked', 'templates'), { recursive: true });
    await writeFile(at('outside'), 'secret');
    await symlink(at('outside'), at('linked', 'templates', 'a.yaml'));
    const result = await dryRun('linked');
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('outside of the directory');
  });
});

const billionLaughs = [
  'a: &a0 [x, x, x, x, x, x, x, x, x, x]',
  ...Array.from(
    { length: 12 },
    (_, i) => `b${i}: &a${i + 1} [${Array.from({ length: 10 }, () => `*a${i}`).join(', ')}]`,
  ),
].join('\n');
