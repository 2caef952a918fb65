import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstat, readFile, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAuthority } from '../support/certificates.js';
import { runOpmate } from '../support/command-line.js';
import { directoryWith } from '../support/temporary.js';
import { serve } from './served-catalogs.js';

const svg = '<svg xmlns="http://www.w3.org/2000/svg"/>';

function catalogText(version: string, packageName = 'foo'): string {
  const blobs = [
    {
      schema: 'olm.package',
      name: packageName,
      defaultChannel: 'stable',
      description: 'a <b> & c',
      icon: { mediatype: 'image/svg+xml', base64data: Buffer.from(svg).toString('base64') },
    },
    {
      schema: 'olm.channel',
      package: packageName,
      name: 'stable',
      entries: [{ name: `${packageName}.v${version}` }],
    },
    {
      schema: 'olm.bundle',
      package: packageName,
      name: `${packageName}.v${version}`,
      image: `registry.test/${packageName}:v${version}`,
      properties: [{ type: 'olm.package', value: { packageName, version } }],
    },
    { schema: 'custom.thing', package: packageName, big: 'x'.repeat(5000) },
    { schema: 'custom.global', name: 'of no package' },
  ];
  return blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('');
}

interface Index {
  hash: string;
  size: number;
  count: number;
  packages: { name: string; hash: string; size: number; count: number; icon?: { hash: string } }[];
}

async function publish(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runOpmate(['catalog', 'publish', ...args]);
  expect(stderr).not.toMatch(/^error/m);
  expect(code, stderr).toBe(0);
  return stdout.trim();
}

async function filesBelow(root: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (entry.isFile()) files[path.relative(root, file)] = (await readFile(file)).toString('base64');
  }
  return files;
}

async function indexOf(directory: string, name: string): Promise<Index> {
  return JSON.parse(
    await readFile(path.join(directory, 'catalogs', name, 'catalog-index.json'), 'utf8'),
  ) as Index;
}

function blobFile(directory: string, hash: string, extension = '.jsonl'): string {
  const hex = hash.replace('sha256:', '');
  return path.join(directory, 'blobs/sha256', hex.slice(0, 2), `${hex}${extension}`);
}

/** A web server that knows nothing of catalogs; resolves with its URL and the paths that were requested. */
async function serveFiles(directory: string): Promise<{ url: string; requests: string[] }> {
  const server = spawn('python3', ['-u', '-m', 'http.server', '0', '--bind', '127.0.0.1', '-d', directory]);
  onTestFinished(() => void server.kill());
  const requests: string[] = [];
  server.stderr.on('data', (text: Buffer) => {
    for (const [, request] of String(text).matchAll(/"GET (\S+)/g)) requests.push(request as string);
  });
  const url = await new Promise<string>((resolve, reject) => {
    let told = '';
    server.once('error', reject);
    server.stdout.on('data', (text: Buffer) => {
      told += String(text);
      const [, port] = / port (\d+)/.exec(told) ?? [];
      if (port !== undefined) resolve(`http://127.0.0.1:${port}`);
    });
  });
  return { url, requests };
}

describe('catalog publish', () => {
  it('writes the contents of the HTTP catalog API by package and digest, with separate icons', async () => {
    const catalog = await directoryWith({
      'a.json': catalogText('1.0.0'),
      'b.json': catalogText('2.0.0', 'bar'),
    });
    const directory = path.join(await directoryWith(), 'public');
    const hash = await publish([catalog, '--name', 'demo', '--to', directory]);

    const server = await serve({
      demo: { 'a.json': catalogText('1.0.0'), 'b.json': catalogText('2.0.0', 'bar') },
    });
    const all = await server.get('/catalogs/demo/api/v1/all');
    for (const name of ['api/v1/all', 'all.json'])
      expect(await readFile(path.join(directory, 'catalogs/demo', name), 'utf8')).toBe(all.text);
    expect(gunzipSync(await readFile(path.join(directory, 'catalogs/demo/api/v1/all.gz'))).toString()).toBe(
      all.text,
    );
    const index = await indexOf(directory, 'demo');
    expect(index).toMatchObject({ hash, size: all.body.length, count: 10 });
    expect(await readFile(blobFile(directory, hash), 'utf8')).toBe(all.text);

    expect(index.packages.map(({ name }) => name)).toEqual(['bar', 'foo']);
    for (const { name, hash: ofPackage, size, count, icon } of index.packages) {
      const lines = await readFile(blobFile(directory, ofPackage), 'utf8');
      const metas = await server.get(`/catalogs/demo/api/v1/metas?package=${name}`);
      const own = (await server.get(`/catalogs/demo/api/v1/metas?schema=olm.package&name=${name}`)).text;
      const { icon: removed, ...withoutIcon } = JSON.parse(own) as { icon: unknown };
      expect(removed).toBeDefined();
      expect(lines).toBe(`${JSON.stringify(withoutIcon)}\n${metas.text}`);
      expect(createHash('sha256').update(lines).digest('hex')).toBe(ofPackage.replace('sha256:', ''));
      expect({ size, count }).toEqual({ size: Buffer.byteLength(lines), count: 4 });
      expect(gunzipSync(await readFile(blobFile(directory, ofPackage, '.jsonl.gz'))).toString()).toBe(lines);
      expect(await readFile(blobFile(directory, icon?.hash ?? '', '.svg'), 'utf8')).toBe(svg);
    }
  });

  it('writes the same bytes in two runs, and refuses a directory with other files', async () => {
    const catalog = await directoryWith({ 'a.json': catalogText('1.0.0') });
    const [first, second] = [await directoryWith(), await directoryWith()];
    for (const directory of [first, second]) await publish([catalog, '--to', directory, '--name', 'demo']);
    expect(await filesBelow(first)).toEqual(await filesBelow(second));
    const again = await runOpmate(['catalog', 'publish', catalog, '--to', first]);
    expect(again).toMatchObject({ code: 1, stdout: '' });
    expect(again.stderr).toContain('add --update');
    const other = await directoryWith({ 'mine.txt': 'x' });
    const refused = await runOpmate(['catalog', 'publish', catalog, '--to', other, '--update']);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('neither empty nor a published directory');
    expect(await readdir(other)).toEqual(['mine.txt']);
  });

  it('adds new contents, keeps used ones, repairs damaged ones, and prunes after the grace period', async () => {
    const catalog = await directoryWith({
      'a.json': catalogText('1.0.0'),
      'b.json': catalogText('1.0.0', 'bar'),
    });
    const directory = path.join(await directoryWith(), 'public');
    const to = ['--to', directory, '--update'];
    await publish([catalog, '--name', 'one', ...to]);
    await publish([catalog, '--name', 'two', ...to]);
    const before = await filesBelow(directory);
    const old = await indexOf(directory, 'one');

    await writeFile(path.join(catalog, 'a.json'), catalogText('1.1.0'));
    const damaged = blobFile(directory, old.packages[0]?.hash ?? '');
    await writeFile(damaged, (await readFile(damaged, 'utf8')).replace('registry', 'Registry'));
    await publish([catalog, '--name', 'one', ...to, '--prune']);
    const after = await filesBelow(directory);
    for (const [file, content] of Object.entries(before)) {
      if (file.startsWith('blobs/')) expect(after[file], file).toBe(content);
    }
    const updated = await indexOf(directory, 'one');
    expect(updated.hash).not.toBe(old.hash);
    expect(updated.packages[0]).toEqual(old.packages[0]);
    expect(await indexOf(directory, 'two')).toEqual({ ...old, name: 'two' });

    // No catalog refers to the files of the first version any more; they have been read until a moment ago.
    await publish([catalog, '--name', 'two', ...to, '--prune']);
    const replaced = blobFile(directory, old.hash);
    expect(await readFile(replaced, 'utf8')).not.toBe('');
    const longAgo = new Date(Date.now() - 2 * 60 * 60 * 1000);
    for (const file of [replaced, `${replaced}.gz`]) await utimes(file, longAgo, longAgo);
    await publish([catalog, '--name', 'two', ...to, '--prune']);
    await expect(readFile(replaced)).rejects.toThrow('ENOENT');
    await expect(readFile(`${replaced}.gz`)).rejects.toThrow('ENOENT');
    const fresh = path.join(await directoryWith(), 'public');
    await publish([catalog, '--name', 'two', '--to', fresh]);
    expect(await indexOf(directory, 'two')).toEqual(await indexOf(fresh, 'two'));
  });

  it('publishes to one directory from two concurrent processes, new or through a link', async () => {
    const catalogs = await Promise.all(
      ['1.0.0', '2.0.0'].map((version) => directoryWith({ 'a.json': catalogText(version) })),
    );
    const root = await directoryWith();
    await symlink('public', path.join(root, 'link'));
    for (const name of ['public', 'link']) {
      const to = ['--to', path.join(root, name), '--update'];
      await Promise.all(catalogs.map((catalog, i) => publish([catalog, '--name', `${name}-${i}`, ...to])));
    }
    const { catalogs: listed } = JSON.parse(
      await readFile(path.join(root, 'public/catalogs/index.json'), 'utf8'),
    ) as { catalogs: { name: string }[] };
    expect(listed.map(({ name }) => name)).toEqual(['link-0', 'link-1', 'public-0', 'public-1']);
    expect((await readdir(path.join(root, 'public'))).sort()).toEqual(['blobs', 'catalogs']);
    expect((await lstat(path.join(root, 'link'))).isSymbolicLink()).toBe(true);
  });

  it('publishes to an existing empty directory from two concurrent processes: both with --update, else one', async () => {
    const names = Array.from({ length: 40 }, (_, i) => `package-${i}`);
    const files = Object.fromEntries(names.map((name) => [`${name}.json`, catalogText('1.0.0', name)]));
    const catalog = await directoryWith(files);
    const start = async (directory: string, ...flags: string[]): Promise<string[]> => {
      const runs = ['one', 'two'].map(async (name) => {
        const args = ['catalog', 'publish', catalog, '--name', name, '--to', directory, ...flags];
        const { code, stderr } = await runOpmate(args, { ownProcess: true });
        if (code === 0) return [name];
        expect(stderr).toMatch(/being changed by another process|must be empty|not empty/);
        return [];
      });
      return (await Promise.all(runs)).flat();
    };
    for (const flags of [['--update'], []]) {
      const directory = await directoryWith();
      const published = await start(directory, ...flags);
      expect(published).toHaveLength(flags.length === 1 ? 2 : 1);
      expect((await readdir(directory)).sort()).toEqual(['blobs', 'catalogs']);
      expect((await readdir(path.join(directory, 'catalogs'))).sort()).toEqual(['index.json', ...published]);
      const { code } = await runOpmate(['catalogs', 'packages', '--published', directory]);
      expect(code).toBe(0);
    }
  });

  it('is readable as a directory and from any web server, each package separately', async () => {
    const files = { 'a.json': catalogText('1.0.0'), 'b.json': catalogText('2.0.0', 'bar') };
    const catalog = await directoryWith(files);
    const directory = await directoryWith();
    await publish([catalog, '--name', 'one', '--to', directory]);
    const { url, requests } = await serveFiles(directory);
    const run = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await runOpmate(args);
      expect([0, 3], stderr).toContain(code);
      return stdout;
    };
    const expected = await run('list', 'bundles', catalog);
    expect(expected).toContain('foo.v1.0.0');
    for (const place of [directory, path.join(directory, 'catalogs/one'), `${url}/catalogs/one`]) {
      expect(await run('list', 'bundles', place)).toBe(expected);
      expect(await run('catalog', 'diff', catalog, place)).toBe(
        await run('catalog', 'diff', catalog, catalog),
      );
      requests.length = 0;
      const resolved = await run('bundle', 'resolve', 'foo', '--catalog', `one=${place}`, '-o', 'json');
      expect(resolved).toContain('registry.test/foo:v1.0.0');
    }
    expect(requests.filter((one) => one.endsWith('/all'))).toEqual([]);
    expect(requests.some((one) => one.startsWith('/blobs/sha256/'))).toBe(true);

    for (const server of [
      ['--published', directory],
      ['--url', url],
    ]) {
      expect(await run('catalogs', 'packages', ...server)).toBe('one/bar\none/foo\n');
      expect(await run('catalogs', 'status', ...server)).toMatch(/^one +True \(Available\)/m);
    }
    expect(await run('catalogs', 'status', '--url', url, '-o', 'json')).toContain(`"${url}/catalogs/one"`);

    await publish([catalog, '--name', 'two', '--to', directory, '--update']);
    const ambiguous = await runOpmate(['list', 'bundles', directory]);
    expect(ambiguous.stderr).toContain('has 2 published catalogs');
    expect(ambiguous.stderr).toContain(path.join(directory, 'catalogs/two'));
  });

  it('is readable by catalogs status, packages and wait with a CA file and credentials', async () => {
    const catalog = await directoryWith({ 'a.json': catalogText('1.0.0') });
    const directory = await directoryWith();
    await publish([catalog, '--name', 'one', '--to', directory]);
    const authority = createAuthority();
    const server = createServer(authority.issue(), (request, response) => {
      if (request.headers.authorization !== `Basic ${btoa('reader:secret')}`) {
        response.writeHead(401, { 'www-authenticate': 'Basic realm="catalogs"' }).end();
        return;
      }
      readFile(path.join(directory, request.url ?? '')).then(
        (bytes) => response.end(bytes),
        () => response.writeHead(404).end(),
      );
    });
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const url = `https://${host}`;
    const auths = { [host]: { auth: btoa('reader:secret') } };
    const trust = await directoryWith({ 'ca.pem': authority.cert, 'auth.json': JSON.stringify({ auths }) });
    const ca = ['--ca-file', path.join(trust, 'ca.pem')];
    const access = [...ca, '--authfile', path.join(trust, 'auth.json')];

    const status = await runOpmate(['catalogs', 'status', '--url', url, ...access]);
    expect(status.stdout, status.stderr).toMatch(/^one +True \(Available\)/m);
    const packages = await runOpmate(['catalogs', 'packages', '--url', url, ...access]);
    expect(packages).toMatchObject({ code: 0, stdout: 'one/foo\n' });
    expect((await runOpmate(['catalogs', 'wait', '--url', url, ...access])).code).toBe(0);

    const unknown = await runOpmate(['catalogs', 'status', '--url', url]);
    expect(unknown).toMatchObject({ code: 1, stdout: '' });
    expect(unknown.stderr).toContain('certificate');
    const anonymous = await runOpmate(['catalogs', 'status', '--url', url, ...ca]);
    expect(anonymous).toMatchObject({ code: 1, stdout: '' });
  });

  it('is refused if a file does not match its digest', async () => {
    const catalog = await directoryWith({ 'a.json': catalogText('1.0.0') });
    const directory = await directoryWith();
    await publish([catalog, '--name', 'one', '--to', directory]);
    const index = await indexOf(directory, 'one');
    const file = blobFile(directory, index.packages[0]?.hash ?? '');
    await writeFile(file, (await readFile(file, 'utf8')).replace('registry', 'Registry'));
    await writeFile(blobFile(directory, index.hash), '{}\n');
    const { url } = await serveFiles(directory);
    for (const [problem, ...args] of [
      ['expected ', 'list', 'bundles', directory],
      ['content has digest sha256:', 'bundle', 'resolve', 'foo', '--catalog', directory],
      ['expected ', 'bundle', 'resolve', 'foo', '--catalog', `${url}/catalogs/one`],
    ] as const) {
      const { code, stdout, stderr } = await runOpmate(args);
      expect({ code, stdout }, args.join(' ')).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain(problem);
    }
    await rm(file);
    const gone = await runOpmate(['bundle', 'resolve', 'foo', '--catalog', directory]);
    expect(gone.stderr).toContain('publish the catalog again with --update');
  });

  it('refuses an index with URLs elsewhere', async () => {
    const size = 1;
    const hostile = {
      'catalogs/one/catalog-index.json': JSON.stringify({
        kind: 'PublishedCatalog',
        version: 1,
        name: 'one',
        hash: 'sha256:../../../../etc/passwd',
        size,
        count: 1,
        codings: [],
        packages: [],
      }),
      'catalogs/index.json': `{"kind":"PublishedCatalogs","version":1,"catalogs":[{"name":"../..","hash":"sha256:${'0'.repeat(64)}","size":1,"count":1,"packages":0}]}`,
    };
    const directory = await directoryWith(hostile);
    for (const place of [directory, path.join(directory, 'catalogs/one')]) {
      const { code, stderr } = await runOpmate(['list', 'bundles', place]);
      expect(code).toBe(1);
      expect(stderr).toMatch(/invalid digest|not a DNS-1123 subdomain/);
    }
  });
});
