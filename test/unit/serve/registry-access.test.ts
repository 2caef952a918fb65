import { createHash } from 'node:crypto';
import { access, readFile, readdir, utimes, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import path from 'node:path';
import bcrypt from 'bcryptjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { collectGarbage } from '../../../src/oci/layout/layout-garbage.js';
import { mediaTypes } from '../../../src/oci/image/types.js';
import { type Registry, type RegistryOptions, startRegistry } from '../../../src/serve/registry/registry.js';
import { directoryWith } from '../../support/temporary.js';

const digestOf = (content: string | Buffer): string =>
  `sha256:${createHash('sha256').update(content).digest('hex')}`;

async function registryOf(
  options: Partial<RegistryOptions> = {},
): Promise<{ registry: Registry; directory: string }> {
  const directory = options.directory ?? path.join(await directoryWith(), 'layout');
  const registry = await startRegistry({ ...options, directory });
  onTestFinished(() => registry.close());
  return { registry, directory };
}

const pushBlob = (registry: Registry, content: string | Buffer, headers: Record<string, string> = {}) =>
  fetch(`${registry.url}/v2/a/blobs/uploads/?digest=${digestOf(content)}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/octet-stream', ...headers },
    body: new Uint8Array(Buffer.from(content)),
  });

const pushManifest = (registry: Registry, document: string, tag: string, type?: string) =>
  fetch(`${registry.url}/v2/a/manifests/${tag}`, {
    method: 'PUT',
    headers: type === undefined ? {} : { 'Content-Type': type },
    body: Buffer.from(document),
  });

/** A manifest with one layer, both pushed. */
async function pushImage(registry: Registry, layer: string, tag: string): Promise<string> {
  for (const blob of ['{}', layer]) expect((await pushBlob(registry, blob)).status).toBe(201);
  const document = JSON.stringify({
    schemaVersion: 2,
    mediaType: mediaTypes.ociManifest,
    config: { mediaType: mediaTypes.ociConfig, digest: digestOf('{}'), size: 2 },
    layers: [{ mediaType: mediaTypes.ociLayer, digest: digestOf(layer), size: layer.length }],
  });
  expect((await pushManifest(registry, document, tag, mediaTypes.ociManifest)).status).toBe(201);
  return digestOf(document);
}

describe('serve/registry: who may do what', () => {
  it('refuses changes that another site asks for, and lets others read', async () => {
    const { registry } = await registryOf();
    for (const headers of [{ Origin: 'https://evil.example' }, { 'Sec-Fetch-Site': 'cross-site' }]) {
      const refused = await pushBlob(registry, 'evil', headers as Record<string, string>);
      expect(refused.status).toBe(403);
      expect(await refused.json()).toMatchObject({ errors: [{ code: 'DENIED' }] });
    }
    const read = await fetch(`${registry.url}/v2/`, { headers: { Origin: 'https://evil.example' } });
    expect(read.status).toBe(200);
    expect(read.headers.get('x-content-type-options')).toBe('nosniff');
    expect(read.headers.get('access-control-allow-origin')).toBeNull();
  });

  it.each(['text/html', 'application/json', 'image/svg+xml', 'application/vnd.oci.image.config.v1+json'])(
    'takes no manifest of type %s',
    async (type) => {
      const { registry } = await registryOf();
      const untyped = JSON.stringify({ schemaVersion: 2, manifests: [], '<script>': '' });
      const refused = await pushManifest(registry, untyped, 'v1', type);
      expect(refused.status).toBe(400);
      expect(await refused.text()).toContain(`unsupported media type \\"${type}\\"`);
      const typed = JSON.stringify({ schemaVersion: 2, manifests: [], mediaType: type });
      expect((await pushManifest(registry, typed, 'v1')).status).toBe(400);
    },
  );

  it('serves a manifest as one, whatever the index of the directory calls it', async () => {
    const { registry, directory } = await registryOf();
    await pushImage(registry, 'layer', 'v1');
    const file = path.join(directory, 'index.json');
    await writeFile(file, (await readFile(file, 'utf8')).replace(mediaTypes.ociManifest, 'text/html'));
    const answer = await fetch(`${registry.url}/v2/a/manifests/v1`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe(mediaTypes.ociManifest);
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('takes no changes when it is for reading only', async () => {
    const { registry, directory } = await registryOf();
    const digest = await pushImage(registry, 'layer', 'v1');
    await registry.close();
    const { registry: reading } = await registryOf({ directory, readOnly: true });
    expect((await fetch(`${reading.url}/v2/a/manifests/v1`)).status).toBe(200);
    const before = await readFile(path.join(directory, 'index.json'), 'utf8');
    expect((await pushBlob(reading, 'more')).status).toBe(405);
    const deletion = await fetch(`${reading.url}/v2/a/manifests/${digest}`, { method: 'DELETE' });
    expect(deletion.status).toBe(405);
    expect(await readFile(path.join(directory, 'index.json'), 'utf8')).toBe(before);
  });

  it('stops taking content at its size limit, leaves nothing of what was refused, and goes on after deletions', async () => {
    const { registry, directory } = await registryOf({ maxSize: 1_000_000 });
    expect((await pushBlob(registry, Buffer.alloc(600_000, 'a'))).status).toBe(201);
    const refused = await pushBlob(registry, Buffer.alloc(600_000, 'b'));
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({
      errors: [{ code: 'DENIED', message: expect.stringContaining('storage limit of') as string }],
    });
    expect((await readdir(directory)).filter((name) => name.startsWith('.upload'))).toEqual([]);
    const digest = digestOf(Buffer.alloc(600_000, 'a'));
    const deleted = await fetch(`${registry.url}/v2/a/blobs/${digest}`, { method: 'DELETE' });
    expect(deleted.status).toBe(202);
    await expect.poll(async () => (await pushBlob(registry, Buffer.alloc(600_000, 'b'))).status).toBe(201);
  });

  it('takes as many of concurrent uploads as its size limit allows', async () => {
    const { registry, directory } = await registryOf({ maxSize: 10_000_000 });
    const responses = await Promise.all(
      Array.from({ length: 12 }, (_, i) => pushBlob(registry, Buffer.alloc(3_000_000, i))),
    );
    const statuses = responses.map(({ status }) => status).sort();
    expect(statuses).toEqual([201, 201, 201, ...Array<number>(9).fill(403)]);
    expect(await readdir(path.join(directory, 'blobs', 'sha256'))).toHaveLength(3);
  });

  it('drops an upload whose connection has broken when the size limit is reached, and no other', async () => {
    const { registry } = await registryOf({ maxSize: 1_000_000 });
    const begin = async (): Promise<string> => {
      const begun = await fetch(`${registry.url}/v2/a/blobs/uploads/`, { method: 'POST' });
      return new URL(begun.headers.get('location') as string, registry.url).href;
    };
    const [broken, active] = [await begin(), await begin()];
    const send = (url: string, size: number) => fetch(url, { method: 'PATCH', body: new Uint8Array(size) });
    expect((await send(active, 100_000)).status).toBe(202);
    const stuck = request(broken, { method: 'PATCH', headers: { 'Content-Length': '900000' } });
    stuck.on('error', () => undefined).write(Buffer.alloc(600_000));
    const offset = async (url: string) => (await fetch(url)).headers.get('range');
    // Requests for an upload wait for each other, so its progress is asked for after the connection has ended.
    setTimeout(() => stuck.destroy(), 200);
    await expect.poll(() => offset(broken)).toBe('0-599999');
    expect((await pushBlob(registry, Buffer.alloc(800_000, 'b'))).status).toBe(201);
    expect((await fetch(broken)).status).toBe(404);
    expect(await offset(active)).toBe('0-99999');
    // A refused upload leaves nothing, and its digest can be pushed elsewhere.
    expect((await send(active, 500_000)).status).toBe(403);
    expect((await fetch(active)).status).toBe(404);
    expect((await pushBlob(registry, Buffer.alloc(150_000, 'c'))).status).toBe(201);
  });

  it.each(['0.0.0.0', '::', '192.0.2.1', 'registry.example'])(
    'does not listen on %s for everybody unless told',
    async (host) => {
      const directory = path.join(await directoryWith(), 'layout');
      await expect(startRegistry({ directory, host })).rejects.toMatchObject({
        code: 'USAGE',
        message: expect.stringContaining('not a loopback address') as string,
        hint: expect.stringContaining('options.insecureListen') as string,
      });
    },
  );

  it('listens for everybody where that is asked for, or where users are', async () => {
    const { registry } = await registryOf({ host: '0.0.0.0', insecureListen: true });
    expect((await fetch(`http://127.0.0.1:${registry.port}/v2/`)).status).toBe(200);
    const directory = await directoryWith({ passwords: `ann:${await bcrypt.hash('secret', 4)}\n` });
    const guarded = await registryOf({ host: '0.0.0.0', htpasswd: path.join(directory, 'passwords') });
    expect((await fetch(`http://127.0.0.1:${guarded.registry.port}/v2/`)).status).toBe(401);
  });
});

describe('serve/registry: users of an htpasswd file', () => {
  const basic = (user: string, password: string) => ({
    Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
  });

  it('lets in those whose password is right, and nobody else', async () => {
    const hash = await bcrypt.hash('pä:ss', 4);
    const directory = await directoryWith({
      // `htpasswd -B` writes $2y$.
      passwords: `# users\nann:${hash.replace(/^\$2.\$/, '$2y$')}\r\n\nbob:${await bcrypt.hash('b', 5)}\n`,
    });
    const { registry } = await registryOf({ htpasswd: path.join(directory, 'passwords') });
    const status = async (headers: Record<string, string>): Promise<number> =>
      (await fetch(`${registry.url}/v2/`, { headers })).status;
    expect(await status(basic('ann', 'pä:ss'))).toBe(200);
    expect(await status(basic('ann', 'pä:ss'))).toBe(200);
    expect(await status(basic('bob', 'b'))).toBe(200);
    for (const headers of [
      {},
      basic('ann', 'b'),
      basic('eve', 'pä:ss'),
      basic('', ''),
      { Authorization: 'Bearer x' },
      { Authorization: 'Basic !' },
    ] as Record<string, string>[]) {
      expect(await status(headers)).toBe(401);
    }
    const refused = await fetch(`${registry.url}/v2/_catalog`);
    expect(refused.headers.get('www-authenticate')).toMatch(/^Basic realm="/);
    expect(await refused.json()).toMatchObject({ errors: [{ code: 'UNAUTHORIZED' }] });
    expect((await pushBlob(registry, 'x')).status).toBe(401);
    expect((await pushBlob(registry, 'x', basic('bob', 'b'))).status).toBe(201);
  });

  it('reads the file again when it changes', async () => {
    const directory = await directoryWith({ passwords: `ann:${await bcrypt.hash('old', 4)}\n` });
    const file = path.join(directory, 'passwords');
    const { registry } = await registryOf({ htpasswd: file });
    const status = async (password: string): Promise<number> =>
      (await fetch(`${registry.url}/v2/`, { headers: basic('ann', password) })).status;
    expect(await status('old')).toBe(200);
    await writeFile(file, `ann:${await bcrypt.hash('new', 4)}\nbob:${await bcrypt.hash('b', 4)}\n`);
    await expect.poll(() => status('new')).toBe(200);
    expect(await status('old')).toBe(401);
  });

  it.each([
    ['ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=', ':1: user "ann": unsupported hash, expected bcrypt'],
    ['\nann', ':2: expected USER:HASH'],
    [`ann:$2y$31$${'a'.repeat(53)}`, ':1: user "ann": bcrypt cost above 16'],
    ['# nobody', ': no users'],
  ])('refuses the file %j', async (text, message) => {
    const directory = await directoryWith({ passwords: text });
    const htpasswd = path.join(directory, 'passwords');
    await expect(startRegistry({ directory: path.join(directory, 'layout'), htpasswd })).rejects.toThrow(
      `${htpasswd}${message}`,
    );
  });
});

describe('oci/layout-garbage', () => {
  const age = async (directory: string, digest: string): Promise<void> => {
    const old = new Date(Date.now() - 2 * 60 * 60 * 1000);
    await utimes(path.join(directory, 'blobs', digest.replace(':', '/')), old, old);
  };
  const collect = async (directory: string, dryRun = false): Promise<string[]> => {
    const removed: string[] = [];
    for await (const { digest } of collectGarbage(directory, { dryRun })) {
      removed.push(digest);
    }
    return removed;
  };
  const has = (directory: string, digest: string): Promise<boolean> =>
    access(path.join(directory, 'blobs', digest.replace(':', '/'))).then(
      () => true,
      () => false,
    );

  it('removes what nothing refers to, except what is young', async () => {
    const { registry, directory } = await registryOf();
    const manifest = await pushImage(registry, 'layer', 'v1');
    for (const content of ['orphan', 'young']) await pushBlob(registry, content);
    const kept = [manifest, digestOf('{}'), digestOf('layer')];
    for (const digest of [...kept, digestOf('orphan')]) await age(directory, digest);
    expect(await collect(directory, true)).toEqual([digestOf('orphan')]);
    expect(await has(directory, digestOf('orphan'))).toBe(true);
    expect(await collect(directory)).toEqual([digestOf('orphan')]);
    expect(await has(directory, digestOf('orphan'))).toBe(false);
    for (const digest of [...kept, digestOf('young')]) expect(await has(directory, digest)).toBe(true);
    expect((await fetch(`${registry.url}/v2/a/blobs/${digestOf('layer')}`)).status).toBe(200);
  });

  it.each(['HEAD', 'mount'])('keeps an old blob that a push has just found there by %s', async (how) => {
    const { registry, directory } = await registryOf();
    await pushBlob(registry, 'layer');
    await age(directory, digestOf('layer'));
    const found =
      how === 'HEAD'
        ? await fetch(`${registry.url}/v2/a/blobs/${digestOf('layer')}`, { method: 'HEAD' })
        : await fetch(`${registry.url}/v2/b/blobs/uploads/?mount=${digestOf('layer')}&from=a`, {
            method: 'POST',
          });
    expect(found.ok).toBe(true);
    expect(await collect(directory)).toEqual([]);
    await pushImage(registry, 'layer', 'v1');
  });

  it('keeps what manifests of unknown types refer to, also below an index', async () => {
    const { registry, directory } = await registryOf();
    await pushBlob(registry, 'data');
    const artifact = JSON.stringify({
      mediaType: 'application/vnd.example.artifact+json',
      blobs: [{ mediaType: 'text/plain', digest: digestOf('data'), size: 4 }],
    });
    await pushBlob(registry, artifact);
    const index = JSON.stringify({
      schemaVersion: 2,
      mediaType: mediaTypes.ociIndex,
      manifests: [
        {
          mediaType: 'application/vnd.example.artifact+json',
          digest: digestOf(artifact),
          size: artifact.length,
        },
      ],
    });
    expect((await pushManifest(registry, index, 'v1', mediaTypes.ociIndex)).status).toBe(201);
    for (const content of ['data', artifact, index]) await age(directory, digestOf(content));
    expect(await collect(directory)).toEqual([]);
  });

  it('removes nothing where a manifest is damaged', async () => {
    const { registry, directory } = await registryOf();
    const manifest = await pushImage(registry, 'layer', 'v1');
    await pushBlob(registry, 'orphan');
    await age(directory, digestOf('orphan'));
    await writeFile(path.join(directory, 'blobs', manifest.replace(':', '/')), '{"x":1}');
    await expect(collect(directory)).rejects.toMatchObject({ code: 'INVALID' });
    expect(await has(directory, digestOf('orphan'))).toBe(true);
  });
});
