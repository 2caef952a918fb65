import { execFile } from 'node:child_process';
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseYaml } from '../../src/document/yaml.js';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { digestOfText, graphText } from '../support/releases.js';
import {
  type ReleaseWorld,
  type WorldRelease,
  startReleaseWorld,
  strangerKey,
} from '../support/release-world.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
const skopeo = (...args: string[]) => promisify(execFile)('skopeo', args);
let world: ReleaseWorld;
const releases: WorldRelease[] = [];

const stable = (all: readonly WorldRelease[]): string =>
  graphText(
    all.map(({ version }) => version),
    all.slice(1).map(({ version }, i) => [(all[i] as WorldRelease).version, version] as const),
    {
      payloads: Object.fromEntries(all.map(({ version, payload }) => [version, payload])),
      channels: 'stable-4.1,fast-4.1',
    },
  );

beforeAll(async () => {
  world = await startReleaseWorld();
  for (const version of ['4.1.0', '4.1.1']) releases.push(await world.addRelease(version));
  world.graphs.set('stable-4.1', stable(releases));
});
afterAll(() => world.close());

const config = (text: string): string =>
  `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  platform:\n${text}`;
const channel = (name = 'stable-4.1', more = ''): string =>
  config(`    channels:\n    - name: ${name}\n${more === '' ? '' : `      ${more}\n`}`);
const mirror = (args: readonly string[], env: Record<string, string> = {}) =>
  sandbox.run(['mirror', '--use-http', ...args], { env: { ...world.environment, ...env } });
/** Variables that name services which are not there. */
const cut = {
  UPDATE_URL_OVERRIDE: 'http://127.0.0.1:9/graph',
  OCP_SIGNATURE_URL: 'http://127.0.0.1:9/signatures/',
};

describe.runIf(hasDockerRegistry)('opmate mirror of releases', () => {
  let target: DockerRegistry;
  beforeEach(async () => {
    target = await startDockerRegistry();
    return () => target.close();
  });
  const to = () => `docker://${target.host}/m`;
  const digestAt = async (name: string): Promise<string> => {
    const { stdout } = await skopeo('inspect', '--tls-verify=false', `docker://${target.host}/m/${name}`);
    return (JSON.parse(stdout) as { Digest: string }).Digest;
  };
  const isEmpty = async (): Promise<boolean> =>
    ((await (await fetch(`http://${target.host}/v2/_catalog`)).json()) as { repositories: string[] })
      .repositories.length === 0;
  const resource = async (workspace: string, name: string): Promise<string> =>
    readFile(at(workspace, 'working-dir', 'cluster-resources', name), 'utf8');

  it('mirrors a release under the names that clusters expect, and requests each manifest once', async () => {
    await sandbox.write({ 'head.yaml': channel() });
    const [, head] = releases as [WorldRelease, WorldRelease];
    world.registry.requests.length = 0;
    const args = ['-c', 'head.yaml', to(), '--workspace', 'file://head'];
    expect(await mirror(args)).toMatchObject({ code: 0 });
    expect(await digestAt('openshift/release-images:4.1.1-x86_64')).toBe(head.digest);
    for (const [name, digest] of Object.entries(head.components))
      expect(await digestAt(`openshift/release:4.1.1-x86_64-${name}`)).toBe(digest);
    const reads = world.registry.requests.filter(
      ({ method, path: asked }) => method === 'GET' && /\/manifests\/sha256:/.test(asked),
    );
    expect(new Set(reads.map((one) => one.path)).size).toBe(reads.length);
    const idms = parseYaml((await resource('head', 'idms-oc-mirror.yaml')).replace('---\n', ''));
    expect(idms).toMatchObject({
      metadata: { name: 'idms-release-0' },
      spec: {
        imageDigestMirrors: [
          { source: `${world.registry.host}/demo/art`, mirrors: [`${target.host}/m/openshift/release`] },
          {
            source: `${world.registry.host}/demo/ocp-release`,
            mirrors: [`${target.host}/m/openshift/release-images`],
          },
        ],
      },
    });
    // All of it is there: a second run copies nothing.
    const again = await mirror([...args, '-o', 'json']);
    expect(again).toMatchObject({ code: 0 });
    expect(again.stderr).toContain('to copy: 0 blobs');
  });

  it('collects the signatures of earlier runs, which skopeo verifies the mirrored images with', async () => {
    const [first, head] = releases as [WorldRelease, WorldRelease];
    await sandbox.write({
      'first.yaml': channel('stable-4.1', 'maxVersion: 4.1.0'),
      'second.yaml': channel(),
    });
    for (const name of ['first', 'second'])
      expect(await mirror(['-c', `${name}.yaml`, to(), '--workspace', 'file://both'])).toMatchObject({
        code: 0,
      });
    const map = JSON.parse(await resource('both', 'signature-configmap.json')) as {
      binaryData: Record<string, string>;
    };
    const key = (digest: string): string => `${digest.replace(':', '-')}-1`;
    expect(Object.keys(map.binaryData).sort()).toEqual([key(first.digest), key(head.digest)].sort());

    await sandbox.write({
      'registries.d/demo.yaml': `docker:\n  ${target.host}:\n    lookaside: file://${at('lookaside')}\n`,
      'policy.json': {
        default: [{ type: 'reject' }],
        transports: {
          docker: {
            [target.host]: [
              {
                type: 'signedBy',
                keyType: 'GPGKeys',
                keyPath: world.keyFile,
                signedIdentity: {
                  type: 'exactReference',
                  dockerReference: `${world.registry.host}/demo/ocp-release:4.1.1-x86_64`,
                },
              },
            ],
          },
        },
      },
    });
    const store = at('lookaside', 'm', 'openshift', `release-images@${head.digest.replace(':', '=')}`);
    await mkdir(store, { recursive: true });
    await writeFile(
      path.join(store, 'signature-1'),
      Buffer.from(map.binaryData[key(head.digest)] ?? '', 'base64'),
    );
    const copy = (tag: string) =>
      skopeo(
        ...[
          'copy',
          '--src-tls-verify=false',
          '--policy',
          at('policy.json'),
          '--registries.d',
          at('registries.d'),
        ],
        ...[`docker://${target.host}/m/openshift/release-images:${tag}`, `dir:${at('copied')}`],
      );
    await mkdir(at('copied'), { recursive: true });
    await copy('4.1.1-x86_64');
    await expect(copy('4.1.0-x86_64')).rejects.toThrow();
  });

  it('mirrors releases through an archive without services, and verifies signatures again', async () => {
    await sandbox.write({
      'all.yaml': channel('stable-4.1', 'full: true'),
      'less.yaml': channel('stable-4.1', 'minVersion: 4.1.1'),
    });
    const [first, head] = releases as [WorldRelease, WorldRelease];
    expect(await mirror(['-c', 'all.yaml', 'file://carry'])).toMatchObject({ code: 0 });
    const asked = world.asked.length;
    const before = world.registry.requests.length;
    const from = ['--from', 'file://carry', to()];
    const wrong = path.join(path.dirname(world.keyFile), 'stranger.asc');
    await promisify(execFile)('gpg', [
      ...['--homedir', path.dirname(world.keyFile), '--batch', '--quiet', '--yes', '--armor'],
      ...['--output', wrong, '--export', strangerKey],
    ]);
    for (const more of [[], ['-c', 'all.yaml']]) {
      const refused = await mirror([...from, ...more, '--workspace', 'file://far0'], {
        ...cut,
        OCP_SIGNATURE_VERIFICATION_PK: wrong,
      });
      expect(refused).toMatchObject({ code: 1 });
      expect(refused.stderr).toMatch(/release signature.*untrusted key/);
    }
    expect(await isEmpty()).toBe(true);

    const less = await mirror([...from, '-c', 'less.yaml', '--workspace', 'file://far1'], cut);
    expect(less).toMatchObject({ code: 0 });
    expect(less.stderr).toContain('1 release of the archive omitted: not in the configuration');
    expect(await digestAt('openshift/release-images:4.1.1-x86_64')).toBe(head.digest);
    await expect(digestAt('openshift/release-images:4.1.0-x86_64')).rejects.toThrow();

    expect(await mirror([...from, '--workspace', 'file://far2'], cut)).toMatchObject({ code: 0 });
    expect(await digestAt('openshift/release-images:4.1.0-x86_64')).toBe(first.digest);
    expect(await resource('far2', 'signature-configmap.yaml')).toContain(first.digest.replace(':', '-'));
    expect([world.asked.length, world.registry.requests.length]).toEqual([asked, before]);
  });

  it('mirrors with a lock without the update service, and deletes the listed images', async () => {
    await sandbox.write({ 'lock.yaml': channel() });
    const at1 = ['-c', 'lock.yaml', to(), '--workspace', 'file://locked'];
    expect(
      await sandbox.run(['mirror', 'plan', '--use-http', ...at1], { env: world.environment }),
    ).toMatchObject({
      code: 0,
    });
    expect(await mirror([...at1, '--locked', '--shard', '0/1'], cut)).toMatchObject({ code: 0 });
    const statusAt = ['mirror', 'status', to(), '--use-http', '--workspace', 'file://locked'];
    expect(await sandbox.run(statusAt)).toMatchObject({ code: 0 });
    expect(await digestAt('openshift/release:4.1.1-x86_64-tools')).toBe(releases[1]?.components['pod']);

    await sandbox.write({
      'delete.yaml':
        'kind: DeleteImageSetConfiguration\ndelete:\n  platform:\n    channels:\n    - name: stable-4.1\n',
    });
    const remove = (...args: string[]) =>
      sandbox.run(['mirror', 'delete', '--use-http', ...args, to()], { env: world.environment });
    const generated = await remove('--generate', '-c', 'delete.yaml', '--workspace', 'file://deleted');
    expect(generated).toMatchObject({ code: 0 });
    const list = at('deleted', 'working-dir', 'delete', 'delete-images.yaml');
    const text = await readFile(list, 'utf8');
    for (const type of ['ocpRelease', 'ocpReleaseContent']) expect(text).toContain(`type: ${type}\n`);
    expect(await remove('--delete-yaml-file', list)).toMatchObject({ code: 0 });
    await expect(digestAt('openshift/release-images:4.1.1-x86_64')).rejects.toThrow();
  });

  it('builds a reproducible graph image, and references it in an UpdateService', async () => {
    const data = at('graph-data.tar.gz');
    await mkdir(at('data', 'channels'), { recursive: true });
    await writeFile(at('data', 'version'), '1.0.0\n');
    await writeFile(at('data', 'channels', 'stable-4.1.yaml'), 'name: stable-4.1\n');
    await promisify(execFile)('tar', ['-czf', data, '-C', at('data'), '.']);
    await sandbox.write({ 'graph.yaml': config('    graph: true\n') });
    const base = `${world.registry.host}/demo/ocp-release:4.1.0-x86_64`;
    const args = ['-c', 'graph.yaml', to(), '--graph-data', data, '--graph-base-image', base];
    const digests: string[] = [];
    for (const workspace of ['graph1', 'graph2']) {
      expect(await mirror([...args, '--workspace', `file://${workspace}`])).toMatchObject({ code: 0 });
      digests.push(await digestAt('openshift/graph-image:latest'));
    }
    expect(digests[0]).toBe(digests[1]);
    expect(parseYaml(await resource('graph1', 'updateService.yaml'))).toMatchObject({
      spec: {
        graphDataImage: `${target.host}/m/openshift/graph-image:latest`,
        releases: `${target.host}/m/openshift/release-images`,
      },
    });
    const { stdout } = await skopeo(
      ...[
        'inspect',
        '--config',
        '--tls-verify=false',
        `docker://${target.host}/m/openshift/graph-image:latest`,
      ],
    );
    expect((JSON.parse(stdout) as { config: { Cmd: string[] } }).config.Cmd.join(' ')).toBe(
      '/bin/bash -c exec cp -rp /var/lib/cincinnati-graph-data/* /var/lib/cincinnati/graph-data',
    );
    const unknown = await mirror(['-c', 'graph.yaml', to(), '--workspace', 'file://graph3']);
    expect(unknown).toMatchObject({ code: 1 });
    expect(unknown.stderr).toContain('--graph-data');
  });

  describe('refuses, and copies nothing,', () => {
    const bad = async (name: string, words: RegExp, env: Record<string, string> = {}): Promise<void> => {
      await sandbox.write({ 'bad.yaml': channel(name) });
      const result = await mirror(
        ['-c', 'bad.yaml', to(), '--workspace', 'file://bad', '--retry-timeout', '1s'],
        env,
      );
      expect(result).toMatchObject({ code: 1 });
      expect(result.stderr).toMatch(words);
      expect(result.stderr).not.toMatch(/ at .*\.[jt]s:/);
      expect(await isEmpty()).toBe(true);
      expect(await readdir(sandbox.temporary)).toEqual([]);
    };
    /** A channel with one release that something is wrong with. */
    const broken = async (
      name: string,
      change: (release: WorldRelease) => Promise<Buffer | undefined>,
      files?: Record<string, string>,
    ): Promise<void> => {
      const release = await world.addRelease(`4.9.${name.length}`, files === undefined ? {} : { files });
      const signature = await change(release);
      if (signature === undefined) world.signatures.delete(release.digest);
      else world.signatures.set(release.digest, signature);
      world.graphs.set(name, stable([release]));
    };

    it('a missing signature', async () => {
      await broken('missing', () => Promise.resolve(undefined));
      await bad('missing', /no release signature/);
    });

    it('a signature by another key', async () => {
      await broken('stranger', ({ digest, version }) => world.sign(digest, version, strangerKey));
      await bad('stranger', /untrusted key/);
    });

    it('the signature of another image', async () => {
      await broken('other', () => world.sign(digestOfText('other'), '4.9.5'));
      await bad('other', /release signature: signature of another image/);
    });

    it('a modified signature', async () => {
      await broken('tampered1', async ({ digest, version }) => {
        const bytes = await world.sign(digest, version);
        bytes[bytes.length - 20] = (bytes.at(-20) ?? 0) ^ 1;
        return bytes;
      });
      await bad('tampered1', /release signature/);
    });

    it('a graph with another version of a release', async () => {
      const [first] = releases as [WorldRelease, WorldRelease];
      world.graphs.set('lies', stable([{ ...first, version: '4.1.7' }]));
      await bad('lies', /signed as .*4\.1\.0-x86_64.*expected version 4\.1\.7 of the update graph/);
    });

    it('a payload without image-references', async () => {
      await broken('no-references', ({ digest, version }) => world.sign(digest, version), { 'etc/x': 'x' });
      await bad('no-references', /not a release image: release-manifests\/image-references not found/);
    });

    it('an unknown channel, and a service with an error or an invalid response', async () => {
      await bad('stable-9.9', /channel stable-9\.9 \(amd64\): no releases/);
      world.graphs.set('nonsense', '{"nodes": [{');
      await bad('nonsense', /channel nonsense \(amd64\): update graph is not JSON/);
      const down = { OCP_SIGNATURE_URL: 'http://127.0.0.1:9/signatures/' };
      await bad('stable-4.1', /127\.0\.0\.1:9/, down);
    });

    it('invalid keys', async () => {
      await sandbox.write({ 'key.txt': 'no key' });
      await bad('stable-4.1', /key\.txt/, { OCP_SIGNATURE_VERIFICATION_PK: at('key.txt') });
    });
  });

  it('accepts an unsigned release with --ignore-release-signature only', async () => {
    const release = await world.addRelease('4.8.0');
    world.signatures.delete(release.digest);
    await sandbox.write({ 'nightly.yaml': config(`    release: ${release.payload}\n`) });
    const args = ['-c', 'nightly.yaml', to(), '--workspace', 'file://nightly'];
    expect((await mirror(args)).stderr).toContain('no release signature');
    expect(await mirror([...args, '--ignore-release-signature'])).toMatchObject({ code: 0 });
    const hex = release.digest.slice('sha256:'.length);
    expect(await digestAt(`openshift/release-images:${hex}`)).toBe(release.digest);
    expect(await digestAt(`openshift/release:${hex}-etcd`)).toBe(release.components['etcd']);
  });

  it('uses a conditional update with a warning, and refuses it with --avoid-risks', async () => {
    const [first, head] = releases as [WorldRelease, WorldRelease];
    const payloads = { [first.version]: first.payload, [head.version]: head.payload };
    world.graphs.set(
      'risky-4.1',
      graphText([first.version, head.version], [], {
        payloads,
        conditional: [{ from: first.version, to: head.version, risk: 'LosesPods' }],
      }),
    );
    await sandbox.write({
      'risky.yaml': channel('risky-4.1', 'shortestPath: true\n      full: true'),
    });
    const args = ['-c', 'risky.yaml', to(), '--dry-run', '--workspace', 'file://risky'];
    const warned = await mirror(args);
    expect(warned).toMatchObject({ code: 0 });
    expect(warned.stderr).toMatch(
      /warn.*from 4\.1\.0 to 4\.1\.1.*LosesPods, https:\/\/example\.com\/LosesPods/,
    );
    const refused = await mirror([...args, '--avoid-risks']);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toContain('https://example.com/LosesPods');
  });
});

describe('opmate mirror list releases', () => {
  const list = (...args: string[]) =>
    sandbox.run(['mirror', 'list', 'releases', '--use-http', ...args], { env: world.environment });

  it('lists releases and channels', async () => {
    expect(await list('--channel', 'stable-4.1')).toMatchObject({
      code: 0,
      stdout: 'Channel: stable-4.1\nArchitecture: amd64\n4.1.0\n4.1.1\n',
    });
    expect(await list('--channels', '--version', '4.1')).toMatchObject({
      code: 0,
      stdout: 'Listing channels for version 4.1:\n\nfast-4.1\nstable-4.1\n',
    });
    const json = await list('--version', '4.1', '--filter-by-archs', 'amd64,arm64', '-o', 'json');
    expect(JSON.parse(json.stdout)).toEqual({
      channels: ['amd64', 'arm64'].map((architecture) => ({
        ...{ channel: 'stable-4.1', architecture, versions: ['4.1.0', '4.1.1'] },
      })),
    });
  });

  it('refuses flags that do not apply', async () => {
    expect(await list('--channels')).toMatchObject({ code: 1 });
    expect((await list('--version', '4.x')).stderr).toContain('invalid OpenShift version "4.x"');
    expect((await list('--channel', 'stable-4.1', '--filter-by-archs', 'x86')).stderr).toContain(
      'unknown architecture',
    );
    expect((await list('--channel', 'stable-9.9')).stderr).toContain('no releases');
  });
});
