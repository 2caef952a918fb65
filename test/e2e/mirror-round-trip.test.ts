import { execFile } from 'node:child_process';
import { cp, open, readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readArchiveIndex } from '../../src/oci/archive-set/archive-index.js';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { serveImage, smallImage } from '../support/images.js';
import { type OperatorSet, serveOperatorSet } from '../support/operator-set.js';
import { type ReleaseWorld, type WorldRelease, startReleaseWorld } from '../support/release-world.js';
import { graphText } from '../support/releases.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
const skopeo = (...args: string[]) => promisify(execFile)('skopeo', args, { maxBuffer: 64 << 20 });
/** Variables that name services which are not there. */
const cut = {
  UPDATE_URL_OVERRIDE: 'http://127.0.0.1:9/graph',
  OCP_SIGNATURE_URL: 'http://127.0.0.1:9/signatures/',
};
let world: ReleaseWorld;
let release: WorldRelease;
let operators: OperatorSet;
let target: DockerRegistry;

const head = 'kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n';
const platform = '  platform:\n    channels:\n    - name: stable-4.1\n';
const helm = '  helm:\n    local:\n    - path: charts/portal\n';
const newest = (): string =>
  `  operators:\n  - catalog: ${operators.catalog}\n    packages:\n    - name: widget\n      minVersion: 1.2.0\n`;

async function mirror(args: readonly string[]) {
  const env = { ...world.environment, ...(args.includes('--from') ? cut : {}) };
  return sandbox.run(['mirror', '--use-http', ...args], { env });
}

/** Digests by `repository:tag` of all that a registry has below a path, every blob read by skopeo. */
async function readAllBelow(prefix: string): Promise<Map<string, string>> {
  const { repositories } = (await (await fetch(`http://${target.host}/v2/_catalog?n=1000`)).json()) as {
    repositories: string[];
  };
  const digests = new Map<string, string>();
  for (const repository of repositories.filter((name) => name.startsWith(`${prefix}/`))) {
    const image = `docker://${target.host}/${repository}`;
    const { stdout } = await skopeo('list-tags', '--tls-verify=false', image);
    for (const tag of (JSON.parse(stdout) as { Tags: string[] }).Tags) {
      const to = ['--digestfile', at('digest'), `${image}:${tag}`, `dir:${at('read')}`];
      await skopeo('copy', '--all', '--src-tls-verify=false', '-q', ...to);
      digests.set(`${repository.slice(prefix.length + 1)}:${tag}`, await readFile(at('digest'), 'utf8'));
    }
  }
  return digests;
}

beforeAll(async () => {
  world = await startReleaseWorld();
  release = await world.addRelease('4.1.1');
  world.graphs.set(
    'stable-4.1',
    graphText(['4.1.1'], [], { payloads: { '4.1.1': release.payload }, channels: 'stable-4.1' }),
  );
  operators = await serveOperatorSet(world.registry);
  serveImage(world.registry, 'acme/portal', 'v1', smallImage({ text: 'portal' }));
  const pod = `kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {containers: [{image: "${world.registry.host}/acme/portal:v1"}]}\n`;
  await sandbox.write({
    'charts/portal/Chart.yaml': 'apiVersion: v2\nname: portal\nversion: 1.0.0\n',
    'charts/portal/templates/pod.yaml': pod,
    'all.yaml': `${head}${platform}  operators:\n  - catalog: ${operators.catalog}\n    full: true\n${helm}`,
    'part.yaml': `${head}${newest()}`,
  });
  if (hasDockerRegistry) target = await startDockerRegistry();
});
afterAll(async () => {
  await target.close();
  await world.close();
});

describe.runIf(hasDockerRegistry)(
  'an image set of a release, operators and a chart through an archive',
  () => {
    it('is complete, with every tag readable by skopeo', async () => {
      expect(await mirror(['-c', 'all.yaml', 'file://carry'])).toMatchObject({ code: 0 });
      expect(await sandbox.run(['archive', 'verify', 'carry'])).toMatchObject({ code: 0 });
      const requests = world.registry.requests.length;
      const to = `docker://${target.host}/all`;
      const far = ['--from', 'carry', '-c', 'all.yaml', '--helm-charts', '--workspace', 'file://far'];
      expect(await mirror([...far, to])).toMatchObject({ code: 0 });
      expect(world.registry.requests.length).toBe(requests);
      const digests = await readAllBelow('all');
      const { images } = JSON.parse(await readFile(at('carry/working-dir/opmate.lock.json'), 'utf8')) as {
        images: { repository: string; tag: string; digest: string }[];
      };
      expect([...digests].sort()).toEqual(
        images.map(({ repository, tag, digest }) => [`${repository}:${tag}`, digest]).sort(),
      );
      expect(digests.get('openshift/release-images:4.1.1-x86_64')).toBe(release.digest);
      expect(digests.get('acme/index:v1')).toBe(operators.digests.get('acme/index:v1'));
      expect([...digests.keys()].some((name) => name.startsWith('helm/local/'))).toBe(true);
      const status = ['mirror', 'status', to, '--use-http', '--workspace', 'file://carry', '--helm-charts'];
      expect(await sandbox.run(status)).toMatchObject({ code: 0 });
    });

    it('names all damaged content and its files, copies none of it, and continues after the repair', async () => {
      const { blobs } = await readArchiveIndex(at('carry'));
      const layers = [...blobs].sort(([, a], [, b]) => b.size - a.size).map(([digest]) => digest);
      const mirrorDamaged = async (name: string, digests: readonly string[]) => {
        await cp(at('carry'), at(name), { recursive: true });
        const file = await open(at(name, 'mirror_000001.tar'), 'r+');
        for (const digest of digests) await file.write('X', blobs.get(digest)?.offset);
        await file.close();
        const args = [
          '--helm-charts',
          '--from',
          name,
          `docker://${target.host}/${name}`,
          '--workspace',
          `file://${name}-far`,
        ];
        const result = await mirror(args);
        expect(result).toMatchObject({ code: 1, stdout: '' });
        const problems = digests.map(
          (digest) => `error: ${name}/mirror_000001.tar: ${digest}: content does not match its digest`,
        );
        expect(
          result.stderr
            .split('\n')
            .filter((line) => line.includes('does not match'))
            .sort(),
        ).toEqual(problems.sort());
        expect(result.stderr).toContain('\nhint: copy the damaged files again from the original archive');
        return () => mirror(args);
      };
      const manifest = operators.digests.get('acme/index:v1') ?? '';
      await mirrorDamaged('damaged', [manifest, layers[0] ?? '']);
      expect(await readAllBelow('damaged')).toEqual(new Map());

      const repeat = await mirrorDamaged('damaged-layers', layers.slice(0, 2));
      // Whatever has a name is whole: skopeo reads all of it.
      await readAllBelow('damaged-layers');
      await cp(at('carry/mirror_000001.tar'), at('damaged-layers/mirror_000001.tar'));
      expect(await repeat()).toMatchObject({ code: 0 });
      expect(await readAllBelow('damaged-layers')).toEqual(await readAllBelow('all'));
    });

    it('is mirrored partly, with a catalog of the configured contents', async () => {
      const to = `docker://${target.host}/part`;
      const far = ['--from', 'carry', '-c', 'part.yaml', to, '--workspace', 'file://part'];
      const first = await mirror(far);
      expect(first).toMatchObject({ code: 0 });
      expect(first.stderr).toContain("for widget: 1 of the archive's bundles");
      const digests = await readAllBelow('part');
      const tagOf = (name: string): string => (operators.digests.get(name) ?? '').replace(':', '-');
      expect([...digests.keys()].sort()).toEqual(
        [
          'acme/bundle:v1.2.0',
          'acme/index:v1',
          `acme/app:${tagOf('acme/app:1.2.0')}`,
          `acme/proxy:${tagOf('acme/proxy:1')}`,
        ].sort(),
      );
      const catalog = `${target.host}/part/acme/index:v1`;
      const rendered = await sandbox.run(['render', catalog, '--use-http']);
      expect(rendered.stdout).toContain('"name": "widget.v1.2.0"');
      expect(rendered.stdout).not.toContain('widget.v1.0.0"');
      expect(await sandbox.run(['validate', catalog, '--use-http'])).toMatchObject({ code: 0 });
      const again = await mirror(far);
      expect(again).toMatchObject({ code: 0 });
      expect(again.stderr).toContain('to copy: 0 blobs');
    });

    it('is mirrored partly from a catalog by digest, which gets the digest of its part as tag', async () => {
      const digest = operators.digests.get('acme/index:v1') as string;
      const byDigest = (text: string): string =>
        text.replace(operators.catalog, `${world.registry.host}/acme/index@${digest}`);
      const whole = `${head}  operators:\n  - catalog: ${operators.catalog}\n    full: true\n`;
      await sandbox.write({
        'digest-all.yaml': byDigest(whole),
        'digest-part.yaml': byDigest(`${head}${newest()}`),
      });
      expect(await mirror(['-c', 'digest-all.yaml', 'file://digest-carry'])).toMatchObject({ code: 0 });
      const to = `docker://${target.host}/digest-part`;
      const part = [
        '--from',
        'digest-carry',
        '-c',
        'digest-part.yaml',
        to,
        '--workspace',
        'file://digest-far',
      ];
      const planned = await mirror([...part, '--dry-run']);
      expect(planned).toMatchObject({ code: 0 });
      expect(await mirror(part)).toMatchObject({ code: 0 });
      const digests = await readAllBelow('digest-part');
      const [[tag, own] = []] = [...digests].filter(([name]) => name.startsWith('acme/index:'));
      expect(tag).toBe(`acme/index:${own?.replace(':', '-')}`);
      expect(own).not.toBe(digest);
      const name = `${target.host}/digest-part/${tag}`;
      const resources = at('digest-far', 'working-dir', 'cluster-resources');
      const files = await readdir(resources);
      expect(files.filter((file) => /^c[cs]-/.test(file))).toEqual([
        expect.stringMatching(/^cc-index-sha256-/),
        expect.stringMatching(/^cs-index-sha256-/),
      ]);
      for (const file of files.filter((file) => /^c[cs]-/.test(file)))
        expect(await readFile(path.join(resources, file), 'utf8')).toContain(name);
      const mapping = await readFile(at('digest-far', 'working-dir', 'dry-run', 'mapping.txt'), 'utf8');
      expect(mapping).toContain(`=docker://${name}\n`);
      expect(await mirror(part)).toMatchObject({
        code: 0,
        stderr: expect.stringContaining('to copy: 0 blobs') as string,
      });
    });
  },
);
