import { readFile, readdir, rm } from 'node:fs/promises';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, expect, it } from 'vitest';
import { type RunningCommand, useSandbox } from '../support/command-line.js';
import { type GitRepository, gitRepository, startGitServer } from '../support/git-server.js';
import { rawTar } from '../support/tar.js';
import { startFaultRegistry } from '../support/fault-registry.js';
import { catalogOf } from './catalogs.js';
import { makeCatalogImage, serveBuilt } from './images.js';

const sandbox = useSandbox();
const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** All passwords of this test, and how they look in headers: encoded with the user, from each of three offsets. */
const passwords = ['wr0ngpass', 'f1rstpass', 'sec0ndpass'];
const encoded = passwords.flatMap((password) => [
  Buffer.from(`ann:${password}`).toString('base64').replace(/=+$/, '').slice(0, -1),
  Buffer.from(password).toString('base64').replace(/=+$/, '').slice(0, -1),
]);
const secrets = new RegExp([...passwords, ...encoded].join('|'));

let password = 'f1rstpass';

/** Refuses requests without the password of the moment. */
function refuse(request: IncomingMessage, response: ServerResponse): boolean {
  const expected = `Basic ${Buffer.from(`ann:${password}`).toString('base64')}`;
  if (request.headers.authorization === expected) return false;
  response.writeHead(401, { 'www-authenticate': 'Basic realm="catalogs"' });
  // Some servers repeat what they refuse.
  response.end(`refused: ${request.headers.authorization}`);
  return true;
}

/** A git server and an HTTP server with the same password; the archive has what the repository has. */
async function startServers(): Promise<{ repository: GitRepository; git: string; archive: string }> {
  const repository = await gitRepository({
    'catalog.json': catalogOf('widget', [{ name: 'widget.v1.0.0' }]),
  });
  const git = await startGitServer({ root: path.dirname(repository.directory), instead: refuse });
  closing.push(() => git.close());
  const server = createServer((request, response) => {
    if (refuse(request, response)) return;
    void readFile(path.join(repository.directory, 'catalog.json')).then((content) =>
      response.writeHead(200).end(gzipSync(rawTar([{ name: 'catalog.json', content }]))),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    repository,
    git: `${git.origin}/repo.git`,
    archive: `http://127.0.0.1:${port}/catalog.tar.gz`,
  };
}

function secret(name: string, text: string): object {
  const stringData = { username: 'ann', password: text };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    type: 'kubernetes.io/basic-auth',
    stringData,
  };
}

async function until(hasHappened: () => Promise<boolean>, command: RunningCommand): Promise<void> {
  for (let i = 0; i < 1_200; i++) {
    if (await hasHappened()) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`did not come about: ${command.stderr().replace(/^debug: GET.*\n/gm, '')}`);
}

it('reads catalogs from Git and HTTP with missing, wrong, valid and replaced Secrets, without showing them', async () => {
  const { repository, git, archive } = await startServers();
  const seen: string[] = [];
  let looks = 0;
  /** Writes the manifests with another label, so that the sources are polled now. */
  const poll = (): Promise<void> => {
    const manifest = (name: string, source: object): object => ({
      apiVersion: 'olm.operatorframework.io/v1',
      kind: 'ClusterCatalog',
      metadata: { name, labels: { look: `l${++looks}` } },
      spec: { source },
    });
    const more = { secretRef: { name: 'source' }, pollIntervalMinutes: 1 };
    return sandbox.write({
      'd/git.json': manifest('git', { type: 'Git', git: { repository: git, ...more } }),
      'd/http.json': manifest('http', { type: 'HTTP', http: { url: archive, ...more } }),
      'd/open.json': manifest('open', { type: 'Directory', directory: { path: '../open' } }),
    });
  };
  await poll();
  await sandbox.write({ 'open/catalog.json': catalogOf('widget', [{ name: 'widget.v1.0.0' }]) });
  await sandbox.write({ 's/other.json': secret('other', 'f1rstpass') });
  const args = [
    '--catalogs',
    'd',
    '--secrets',
    's',
    '--secret',
    `source=${new URL(git).host}`,
    '--secret',
    `source=${new URL(archive).host}`,
    '--storage',
    'st',
    '--http',
    '0',
    '--log-level',
    'debug',
  ];
  const command = sandbox.start(['serve', ...args], { timeoutMs: 120_000 });
  const url = await command.firstLine();
  const base = new URL(url).origin;
  const textAt = async (route: string): Promise<string> => {
    const text = await (await fetch(`${base}${route}`)).text();
    seen.push(text);
    return text;
  };
  /** The condition Progressing of a catalog, with its reason and message. */
  const progress = async (name: string): Promise<string> => {
    const { items } = JSON.parse(await textAt('/api/v1/catalogs')) as {
      items: {
        metadata: { name: string };
        status: { conditions: { type: string; reason: string; message: string }[] };
      }[];
    };
    const { conditions = [] } = items.find(({ metadata }) => metadata.name === name)?.status ?? {};
    const progressing = conditions.find(({ type }) => type === 'Progressing');
    return progressing === undefined ? '' : `${progressing.reason}: ${progressing.message}`;
  };
  const bothAre = async (pattern: RegExp): Promise<void> => {
    for (const name of ['git', 'http']) await until(async () => pattern.test(await progress(name)), command);
  };
  const bothServe = async (bundle: string): Promise<void> => {
    for (const name of ['git', 'http']) {
      await until(async () => (await textAt(`/catalogs/${name}/api/v1/all`)).includes(bundle), command);
    }
  };

  await bothAre(/^Retrying: Secret "source": not found/);
  await until(async () => (await textAt('/catalogs/open/api/v1/all')).includes('widget.v1.0.0'), command);

  await sandbox.write({ 's/source.json': secret('source', 'wr0ngpass') });
  await poll();
  await bothAre(/^Retrying: (?!Secret)/);
  expect(await progress('git')).toMatch(/authentication|credentials|401/i);
  expect(await progress('http')).toMatch(/authentication|credentials|401/i);

  await sandbox.write({ 's/source.json': secret('source', 'f1rstpass') });
  await poll();
  await bothServe('widget.v1.0.0');
  await bothAre(/^Succeeded/);

  // The password is changed where the sources are, then in the Secret; what was served before is served until then.
  password = 'sec0ndpass';
  await repository.commit({ 'catalog.json': catalogOf('widget', [{ name: 'widget.v2.0.0' }]) });
  await poll();
  await bothAre(/^Retrying/);
  await bothServe('widget.v1.0.0');
  await sandbox.write({ 's/source.json': secret('source', 'sec0ndpass') });
  await poll();
  await bothServe('widget.v2.0.0');
  await bothAre(/^Succeeded/);

  // A Secret that goes takes nothing away that is served.
  await rm(path.join(sandbox.work, 's/source.json'));
  await poll();
  await bothAre(/^Retrying: Secret "source": not found/);
  await bothServe('widget.v2.0.0');

  await textAt('/metrics');
  await textAt('/catalogs');
  for (const remote of [[], ['-o', 'json']]) {
    const { stdout, stderr } = await sandbox.run(['catalogs', 'status', '--storage', 'st', ...remote]);
    seen.push(stdout, stderr);
  }
  const { code, stdout, stderr } = await command.stop();
  expect(code).toBe(0);
  seen.push(stdout, stderr);
  const files = await readdir(path.join(sandbox.work, 'st'), { recursive: true, withFileTypes: true });
  for (const file of files) {
    if (file.isFile()) seen.push(await readFile(path.join(file.parentPath, file.name), 'latin1'));
  }
  expect(seen.filter((text) => secrets.test(text))).toEqual([]);
  expect(await sandbox.leftovers()).toEqual([]);
});

it('pulls the images of catalogs with the Secrets that exist of those that they name', async () => {
  const registry = await startFaultRegistry();
  closing.push(() => registry.close());
  const catalog = catalogOf('widget', [{ name: 'widget.v1.0.0' }]);
  serveBuilt(registry, 'team/catalog', 'v1', await makeCatalogImage({ 'catalog.json': catalog }));
  registry.requireBasic('ann', 'f1rstpass');
  const config = { auths: { [registry.host]: { auth: Buffer.from('ann:f1rstpass').toString('base64') } } };
  await sandbox.write({
    'pulls/s/pull.json': {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'pull', namespace: 'olm' },
      type: 'kubernetes.io/dockerconfigjson',
      stringData: { '.dockerconfigjson': JSON.stringify(config) },
    },
    'pulls/d/source.json': {
      apiVersion: 'operators.coreos.com/v1alpha1',
      kind: 'CatalogSource',
      metadata: { name: 'team', namespace: 'olm' },
      spec: { sourceType: 'grpc', image: `${registry.host}/team/catalog:v1`, secrets: ['gone', 'pull'] },
    },
  });
  const args = [
    '--catalogs',
    'pulls/d',
    '--secrets',
    'pulls/s',
    '--storage',
    'pulls/st',
    '--http',
    '0',
    '--use-http',
  ];
  const command = sandbox.start(['serve', ...args], { timeoutMs: 120_000 });
  const base = new URL(await command.firstLine()).origin;
  await until(
    async () => (await (await fetch(`${base}/catalogs/team/api/v1/all`)).text()).includes('widget.v1.0.0'),
    command,
  );
  const { stderr } = await command.stop();
  expect(stderr).toContain('catalog team: Secret "olm/gone": not found');
  expect(stderr).not.toMatch(secrets);
});
