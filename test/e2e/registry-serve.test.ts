import { copyFile, readFile, readdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { ChannelCredentials } from '@grpc/grpc-js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { hasKubectl, startApiServer } from '../support/api-server.js';
import { type RunningCommand, commandFile, readGrpcPort, useSandbox } from '../support/command-line.js';
import { packageArchive, startAppRegistry } from '../support/app-registry.js';
import { createAuthority } from '../support/certificates.js';
import { indexFile } from '../support/index-file.js';
import { smallCrd, smallCsv, smallPackage, widgetTree } from '../support/manifest-trees.js';
import { type RegistryClient, registryClient } from '../support/registry-client.js';

const sandbox = useSandbox();
const at = (name: string): string => path.join(sandbox.work, name);

/** Starts `opmate registry serve ARGS` on a free port and waits until it serves. */
async function serve(...args: string[]): Promise<{ running: RunningCommand; port: number }> {
  const running = sandbox.start(['registry', 'serve', '-p', '0', ...args]);
  return { running, port: await readGrpcPort(running) };
}

function clientOf(port: number, options?: Parameters<typeof registryClient>[1]): RegistryClient {
  const client = registryClient(port, options);
  onTestFinished(() => client.close());
  return client;
}

const packages = async (client: RegistryClient): Promise<unknown[]> =>
  (await client.call('ListPackages')).map(({ name }) => name);

describe('opmate registry serve', () => {
  it('serves bundles.db by default until stopped', async () => {
    await copyFile(await indexFile(), at('bundles.db'));
    const before = await readFile(at('bundles.db'));
    const { running, port } = await serve('--host', '127.0.0.1');
    const client = clientOf(port);
    expect(await packages(client)).toEqual(['widget']);
    expect(await client.call('ListBundles')).toHaveLength(4);
    const health = clientOf(port, { service: 'grpc.health.v1.Health' });
    expect(await health.call('Check')).toEqual([{ status: 'SERVING' }]);
    const { code, stdout, stderr } = await running.stop();
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).not.toContain('widget');
    expect(await readFile(at('bundles.db'))).toEqual(before);
    expect(await readdir(sandbox.work)).toEqual(['bundles.db']);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('serves an old index from a temporary copy', async () => {
    const name = 'old.db';
    await copyFile(await indexFile('UPDATE schema_migrations SET version = 12'), at(name));
    const before = await readFile(at(name));
    const flags = ['--skip-migrate', '--container-tool', 'podman', '--debug', '--termination-log', ''];
    const { running, port } = await serve('-d', name, ...flags);
    expect(await packages(clientOf(port))).toEqual(['widget']);
    expect(await sandbox.leftovers()).toHaveLength(1);
    expect((await running.stop('SIGINT')).code).toBe(0);
    expect(await readFile(at(name))).toEqual(before);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('stops after its timeout', async () => {
    await copyFile(await indexFile(), at('short.db'));
    const { running } = await serve('-d', 'short.db', '--timeout-seconds', '1');
    expect((await running.result).code).toBe(0);
  });

  it('serves a ConfigMap, and the valid part of app-registry packages', async () => {
    const data = {
      customResourceDefinitions: JSON.stringify([smallCrd('widget')]),
      clusterServiceVersions: JSON.stringify([smallCsv({ name: 'cm.v1', owned: ['widget'] })]),
      packages: JSON.stringify([smallPackage('cm', { stable: 'cm.v1' })]),
    };
    await sandbox.write({
      'cm.json': { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'cm' }, data },
      'namespace/cm/bundle.yaml': { data },
      'namespace/bad/y.yaml': 'a: [',
      ...Object.fromEntries(
        Object.entries(widgetTree()).map(([name, content]) => [`namespace/widget/${name}`, content]),
      ),
    });
    const map = await serve('--configmap', 'cm.json');
    const client = clientOf(map.port);
    const bundle = { pkgName: 'cm', channelName: 'stable', csvName: 'cm.v1' };
    const [answer] = await client.call('GetBundle', bundle);
    expect(answer).toMatchObject({ bundlePath: '', csvName: 'cm.v1' });
    expect(answer?.['object']).toHaveLength(2);
    // There is no image to get the manifests from.
    expect((await client.call('ListBundles'))[0]?.['object']).toHaveLength(2);
    expect((await map.running.stop()).code).toBe(0);

    const refused = await sandbox.run(['registry', 'serve', '--appregistry-namespace', 'namespace']);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('y.yaml') as string });
    const { running, port } = await serve('--appregistry-namespace', 'namespace', '--permissive');
    expect(await packages(clientOf(port))).toEqual(['cm', 'widget']);
    expect((await running.stop()).stderr).toMatch(/^error: .*y\.yaml:1: /m);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it.skipIf(!hasKubectl)(
    'serves a ConfigMap of a cluster, as configmap-server did (needs kubectl)',
    async () => {
      const cluster = await startApiServer();
      onTestFinished(() => cluster.close());
      const data = {
        customResourceDefinitions: JSON.stringify([smallCrd('widget')]),
        clusterServiceVersions: JSON.stringify([smallCsv({ name: 'cm.v1', owned: ['widget'] })]),
        packages: JSON.stringify([smallPackage('cm', { stable: 'cm.v1' })]),
      };
      const metadata = { name: 'operators', namespace: 'olm' };
      cluster.put({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
      await sandbox.write({ kubeconfig: cluster.kubeconfig });
      const link = at('configmap-server');
      await symlink(commandFile, link);
      const flags = ['-k', 'kubeconfig', '-n', 'olm'];
      const running = sandbox.start(['-c', 'operators', ...flags, '-p', '0'], { file: link });
      expect(await packages(clientOf(await readGrpcPort(running)))).toEqual(['cm']);
      expect((await running.stop()).code).toBe(0);
      const missing = await sandbox.run(['-c=none', ...flags], { file: link });
      expect(missing).toMatchObject({ code: 1, stdout: '' });
      expect(missing.stderr).toMatch(/^error: ConfigMap "none" in namespace "olm": not found$/m);
      const flag = await sandbox.run(['-c', 'operators', '-k', 'kubeconfig'], { file: link });
      expect(flag.stderr).toContain('configmap-namespace');
      expect(cluster.requests.every(({ method }) => method === 'GET')).toBe(true);
      expect(await sandbox.leftovers()).toEqual([]);
    },
  );

  it('serves a namespace of an app registry', async () => {
    const apps = await startAppRegistry();
    onTestFinished(() => apps.close());
    apps.serve('ns', 'widget', { '1.0.0': packageArchive(widgetTree()) });
    apps.token = 'basic dG9rZW4=';
    const flags = ['--appregistry-namespace', 'ns', '--appregistry-endpoint', apps.endpoint, '--use-http'];
    const { running, port } = await serve(...flags, '--auth-token', apps.token);
    expect(await packages(clientOf(port))).toEqual(['widget']);
    expect((await running.stop()).code).toBe(0);
    expect(
      (await sandbox.run(['registry', 'init', ...flags, '--auth-token', apps.token, '--to', 'ns.db'])).code,
    ).toBe(0);
    expect((await sandbox.run(['list', 'packages', 'ns.db'])).stdout).toContain('widget');
  });

  it('serves TLS', async () => {
    const authority = createAuthority();
    const { cert, key } = authority.issue();
    await sandbox.write({ 'tls.crt': cert, 'tls.key': key });
    await copyFile(await indexFile(), at('tls.db'));
    const { port } = await serve('-d', 'tls.db', '--tls-cert', 'tls.crt', '--tls-key', 'tls.key');
    const credentials = ChannelCredentials.createSsl(Buffer.from(authority.cert));
    expect(await packages(clientOf(port, { credentials }))).toEqual(['widget']);
    expect(await clientOf(port).failure('ListPackages')).toMatch(/^14: /);
  });

  it('reports faults of the database, also in the termination log', async () => {
    await sandbox.write({ 'text.db': 'no database' });
    for (const [file, said] of [
      ['no.db', 'no.db: no such file or directory'],
      ['text.db', 'text.db: not a sqlite database'],
    ] as const) {
      const result = await sandbox.run(['registry', 'serve', '-d', file, '-t', `${file}.log`]);
      expect(result).toMatchObject({ code: 1, stdout: '' });
      expect(result.stderr.split('\n')[0]).toBe(`error: ${said}`);
      expect(await readFile(at(`${file}.log`), 'utf8')).toBe(`${said}\n`);
    }
  });

  it('reports a port in use', async () => {
    await copyFile(await indexFile(), at('taken.db'));
    const { port } = await serve('-d', 'taken.db');
    const result = await sandbox.run(['registry', 'serve', '-d', 'taken.db', '-p', String(port)]);
    expect(result).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('address already in use') as string,
    });
  });

  it.each([
    [['-d', 'a.db', '--configmap', 'b'], '--database and --configmap cannot be used together'],
    [['-p', 'x'], '--port "x": expected an integer from 0 to 65535'],
    [['--timeout-seconds', '65536'], '--timeout-seconds "65536": expected an integer from 0 to 65535'],
    [['--timeout-seconds', '-1'], '--timeout-seconds "-1": expected an integer from 0 to 65535'],
    [['--unknown'], 'unknown option "--unknown"'],
  ])('refuses %j with exit code 1, as opm', async (args, said) => {
    const { code, stderr } = await sandbox.run(['registry', 'serve', ...args]);
    expect({ code, line: stderr.split('\n')[0] }).toEqual({ code: 1, line: `error: ${said}` });
  });
});
