import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRegistry } from '../../src/serve/registry/registry.js';
import { type CommandResult, useSandbox } from '../support/command-line.js';
import { hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import {
  type FaultRegistry,
  type FaultResponse,
  sha256,
  startFaultRegistry,
} from '../support/fault-registry.js';
import { type OperatorSet, serveOperatorSet, widgetVersions } from '../support/operator-set.js';
import { type RegistryProxy, startRegistryProxy } from '../support/registry-proxy.js';

const sandbox = useSandbox();
const ociManifest = 'application/vnd.oci.image.manifest.v1+json';
let source: FaultRegistry;
let operators: OperatorSet;

beforeAll(async () => {
  source = await startFaultRegistry();
  operators = await serveOperatorSet(source);
  const set = (kind: string, key: string, versions: string): string =>
    `kind: ${kind}\napiVersion: mirror.openshift.io/v2alpha1\n${key}:\n  operators:\n  - catalog: ${operators.catalog}\n    packages:\n    - name: widget\n${versions}`;
  await sandbox.write({
    'all.yaml': set('ImageSetConfiguration', 'mirror', '      minVersion: 1.0.0\n'),
    'newest.yaml': set('ImageSetConfiguration', 'mirror', ''),
    'disc.yaml': set(
      'DeleteImageSetConfiguration',
      'delete',
      '      minVersion: 1.0.0\n      maxVersion: 1.1.0\n',
    ),
  });
});
afterAll(() => source.close());

const run = (...args: string[]): Promise<CommandResult> =>
  sandbox.run(['mirror', ...args, '--use-http'], { timeoutMs: 50_000 });
const digestOf = (name: string): string => operators.digests.get(name) as string;
const tagOf = (name: string): string => digestOf(name).replace(':', '-');
const listOf = (workspace: string, name = 'delete-images.yaml'): string =>
  path.join(sandbox.work, workspace, 'working-dir', 'delete', name);
const mirrorAll = async (host: string): Promise<void> => {
  const result = await run('-c', 'all.yaml', `docker://${host}/ocm`, '--workspace', 'file://all');
  expect(result).toMatchObject({ code: 0 });
};
const generate = (host: string, ...args: string[]): Promise<CommandResult> =>
  run('delete', '--generate', '-c', 'disc.yaml', `docker://${host}/ocm`, ...args);
/** Writes a list of these below `reg.test`, and tells what deleting it says. */
async function deleteText(text: string, target: string): Promise<CommandResult> {
  await sandbox.write({ 'list.yaml': text });
  return run('delete', '--delete-yaml-file', 'list.yaml', target);
}
const listing = (...items: string[]): string =>
  `apiVersion: mirror.openshift.io/v2alpha1\nitems:\n${items.join('')}kind: DeleteImageList\n`;
const item = (reference: string, type = 'generic'): string =>
  `- imageName: docker://quay.io/acme/x:v1\n  imageReference: docker://${reference}\n  type: ${type}\n`;
/** Tags that a registry has of a repository. */
async function tagsAt(host: string, repository: string): Promise<string[]> {
  const answer = await fetch(`http://${host}/v2/${repository}/tags/list`);
  const { tags } = (answer.ok ? await answer.json() : {}) as { tags?: string[] | null };
  return (tags ?? []).sort();
}

const registries = {
  opmate: async () => {
    const registry = await startRegistry({ directory: path.join(sandbox.work, 'served') });
    return { host: new URL(registry.url).host, close: () => registry.close() };
  },
  ...(hasDockerRegistry && { 'docker-registry': () => startDockerRegistry() }),
};

describe.each(Object.entries(registries))('mirror delete, at %s', (name, start) => {
  let registry: { host: string; close(): Promise<void> };
  let host = '';
  beforeAll(async () => {
    registry = await start();
    ({ host } = registry);
    await mirrorAll(host);
  });
  afterAll(() => registry.close());

  it('lists the images of a set to delete, and deletes exactly those', async () => {
    const workspace = `file://${name}`;
    const generated = await generate(host, '--workspace', workspace);
    expect(generated).toMatchObject({ code: 0, stdout: '' });
    expect(generated.stderr).toContain('delete-images.yaml: 5 images to delete; catalogs stay');
    const listed = (image: string, of: string, tag: string, type: string): string =>
      [
        `- imageName: docker://${source.host}/${image}${of}\n`,
        `  imageReference: docker://${host}/ocm/${image}:${tag}\n`,
        `  type: ${type}\n`,
      ].join('');
    const operand = (key: string): string =>
      listed(key.split(':')[0] as string, `@${digestOf(key)}`, tagOf(key), 'operatorRelatedImage');
    const apps = ['acme/app:1.0.0', 'acme/app:1.1.0'].sort((a, b) => (tagOf(a) < tagOf(b) ? -1 : 1));
    const bundles = ['v1.0.0', 'v1.1.0'].map((tag) =>
      listed('acme/bundle', `:${tag}`, tag, 'operatorBundle'),
    );
    expect(await readFile(listOf(name), 'utf8')).toBe(
      listing(...apps.map(operand), ...bundles, operand('acme/proxy:1')),
    );
    expect(await readFile(listOf(name, 'delete-imageset-config.yaml'), 'utf8')).toBe(
      await readFile(path.join(sandbox.work, 'disc.yaml'), 'utf8'),
    );

    // What stays is the newest version; the operand that all versions share belongs to it, too.
    const newest = await run('-c', 'newest.yaml', `docker://${host}/ocm`, '--workspace', 'file://newest');
    expect(newest.code).toBe(0);
    const keep = ['--keep', 'newest/working-dir/opmate.lock.json'];
    const file = path.relative(sandbox.work, listOf(name));
    const command = (list: string, flags: string): string =>
      `next: opmate mirror delete --delete-yaml-file ${list}/working-dir/delete/delete-images.yaml${flags} --use-http docker://${host}/ocm\n`;
    expect(generated.stderr).not.toContain('selected by');
    const partly = await generate(host, '--workspace', 'file://newest');
    expect(partly.stderr).toContain(`1 of 5 images is selected by ${keep[1]}, and kept with --keep\n`);
    expect(partly.stderr).toContain(command('newest', ` ${keep.join(' ')}`));
    const wholly = await generate(host, '--workspace', 'file://all');
    const lock = 'all/working-dir/opmate.lock.json';
    expect(wholly.stderr).toContain(
      `5 of 5 images are selected by ${lock}: the next command deletes them, and with --keep ${lock} nothing\n`,
    );
    expect(wholly.stderr).toContain(command('all', ''));
    for (const workspace of ['newest', 'all'])
      expect(await readFile(listOf(workspace), 'utf8')).toBe(await readFile(listOf(name), 'utf8'));
    const elsewhere = await run(
      'delete',
      '--generate',
      '-c',
      'disc.yaml',
      `docker://${host}/other`,
      '--workspace',
      'file://all',
    );
    expect(elsewhere.stderr).not.toContain('selected by');

    const args = ['delete', '--delete-yaml-file', file, `docker://${host}/ocm`, ...keep];
    const preview = await run(...args, '--dry-run');
    expect(preview.stderr).toContain('4 images would be deleted, 1 kept');
    const result = await run(...args);
    expect(result).toMatchObject({ code: 0, stdout: preview.stdout });
    const lines = [
      ...apps.map((key) => `${digestOf(key)} ${host}/ocm/acme/app:${tagOf(key)}`),
      ...['1.0.0', '1.1.0'].map(
        (version) => `${digestOf(`acme/bundle:${version}`)} ${host}/ocm/acme/bundle:v${version}`,
      ),
    ];
    expect(result.stdout).toBe(lines.map((line) => `${line}\n`).join(''));
    expect(result.stderr).toContain(
      `${host}/ocm/acme/proxy:${tagOf('acme/proxy:1')}: kept, bundle "widget.v1.2.0" of package "widget" in ${keep[1]} needs it`,
    );
    expect(await tagsAt(host, 'ocm/acme/bundle')).toEqual(['v1.2.0']);
    expect(await tagsAt(host, 'ocm/acme/app')).toEqual([tagOf('acme/app:1.2.0')]);
    expect(await tagsAt(host, 'ocm/acme/proxy')).toEqual([tagOf('acme/proxy:1')]);
    expect(await tagsAt(host, 'ocm/acme/index')).toEqual(['v1']);

    // Once more there is nothing left to do; without the lock what it kept goes.
    const again = await run(...args);
    expect(again).toMatchObject({ code: 0, stdout: '' });
    expect(again.stderr).toContain('0 images deleted, 4 not found, 1 kept');
    const rest = await run('delete', '--delete-yaml-file', file, `docker://${host}/ocm`);
    expect(rest.stdout).toBe(`${digestOf('acme/proxy:1')} ${host}/ocm/acme/proxy:${tagOf('acme/proxy:1')}\n`);
    expect(await tagsAt(host, 'ocm/acme/proxy')).toEqual([]);
  });

  it('deletes signatures with their images on request', async () => {
    const [image, signature] = ['acme/app:1.0.0', 'acme/app:1.1.0'];
    const pull = (key: string) => `docker://${source.host}/acme/app@${digestOf(key)}`;
    const base = `${host}/signed/app`;
    for (const [key, tag] of [
      [image, 'v1'],
      [signature, `${tagOf(image)}.sig`],
    ] as const) {
      const copied = await sandbox.run(['oci', 'copy', pull(key), `docker://${base}:${tag}`, '--use-http']);
      expect(copied.code).toBe(0);
    }
    await sandbox.write({ 'signed.yaml': listing(item(`${base}:v1`)) });
    const args = ['delete', '--delete-yaml-file', 'signed.yaml', `docker://${host}`];
    const result = await run(...args, '--delete-signatures');
    expect(result).toMatchObject({ code: 0 });
    expect(result.stdout.trimEnd().split('\n')).toEqual([
      `${digestOf(image)} ${base}:v1`,
      `${digestOf(signature)} ${base}:${tagOf(image)}.sig`,
    ]);
    expect(await tagsAt(host, 'signed/app')).toEqual([]);
  });
});

describe.each(Object.entries(registries))('mirror delete, at %s behind a broken network', (name, start) => {
  /** Tags that a registry has of the set. */
  const contentOf = async (host: string): Promise<Record<string, string[]>> => ({
    app: await tagsAt(host, 'ocm/acme/app'),
    bundle: await tagsAt(host, 'ocm/acme/bundle'),
    proxy: await tagsAt(host, 'ocm/acme/proxy'),
    index: await tagsAt(host, 'ocm/acme/index'),
  });
  const getRest = (): Record<string, string[]> => ({
    app: [tagOf('acme/app:1.2.0')],
    bundle: ['v1.2.0'],
    proxy: [tagOf('acme/proxy:1')],
    index: ['v1'],
  });

  async function withRegistry(work: (proxy: RegistryProxy, args: string[]) => Promise<void>): Promise<void> {
    const registry = await start();
    const proxy = await startRegistryProxy(registry.host);
    try {
      await mirrorAll(proxy.host);
      const to = `docker://${proxy.host}/ocm`;
      const newest = await run('-c', 'newest.yaml', to, '--workspace', `file://${name}-kept`);
      expect(newest.code).toBe(0);
      const lists = `${name}-broken`;
      expect(await generate(proxy.host, '--workspace', `file://${lists}`)).toMatchObject({ code: 0 });
      const file = path.relative(sandbox.work, listOf(lists));
      const keep = ['--keep', `${name}-kept/working-dir/opmate.lock.json`];
      await work(proxy, ['delete', '--delete-yaml-file', file, to, ...keep]);
    } finally {
      await proxy.close();
      await registry.close();
    }
  }

  it('deletes exactly the listed images, though each request breaks at first', async () => {
    await withRegistry(async (proxy, args) => {
      const ways = [
        { reset: true },
        { status: 503 },
        { status: 429, headers: { 'retry-after': '0' } },
      ] as const;
      const seen = new Set<string>();
      proxy.disturb(({ method, path: url }) => {
        const key = `${method} ${url}`;
        if (seen.has(key)) return undefined;
        seen.add(key);
        return ways[seen.size % ways.length];
      });
      const result = await run(...args);
      proxy.disturb(() => undefined);
      expect(result).toMatchObject({ code: 0 });
      expect(result.stdout.trimEnd().split('\n')).toHaveLength(4);
      expect(await contentOf(proxy.host)).toEqual(getRest());
    });
  });

  it('continues when repeated after it was killed, and deletes nothing else', async () => {
    await withRegistry(async (proxy, args) => {
      const before = await contentOf(proxy.host);
      for (const last of [1, 3]) {
        const killed = sandbox.start(['mirror', ...args, '--use-http']);
        let deletions = 0;
        proxy.disturb(({ method }) => {
          if (method === 'DELETE' && ++deletions === last) killed.child.kill('SIGKILL');
          return undefined;
        });
        await killed.result;
        for (const [repository, tags] of Object.entries(await contentOf(proxy.host))) {
          const all = before[repository] as string[];
          expect(all).toEqual(expect.arrayContaining(tags));
          expect(tags).toEqual(expect.arrayContaining(getRest()[repository] as string[]));
        }
      }
      proxy.disturb(() => undefined);
      expect(await run(...args)).toMatchObject({ code: 0 });
      expect(await contentOf(proxy.host)).toEqual(getRest());
    });
  });
});

describe('mirror delete --generate', () => {
  const generated = async (name: string, ...args: string[]): Promise<string[]> => {
    const result = await generate('reg.test', '--workspace', `file://${name}`, ...args);
    expect(result).toMatchObject({ code: 0 });
    const file = (await readdir(path.dirname(listOf(name)))).find((one) => one.startsWith('delete-images'));
    const text = await readFile(listOf(name, file), 'utf8');
    return [...text.matchAll(/imageReference: (\S+)/g)].map(([, reference]) => reference as string);
  };

  it('lists signatures and tags of v1 on request', async () => {
    const signed = await generated('signed', '--delete-signatures', '--delete-id', 'mine.1');
    expect(signed).toHaveLength(8);
    expect(signed).toContain(`docker://reg.test/ocm/acme/proxy:${tagOf('acme/proxy:1')}.sig`);
    expect((await readdir(path.dirname(listOf('signed')))).sort()).toEqual([
      'delete-images-mine.1.yaml',
      'delete-imageset-config-mine.1.yaml',
    ]);
    const old = await generated('old', '--delete-v1-images');
    expect(old.filter((reference) => reference.includes('bundle'))).toEqual([
      'docker://reg.test/ocm/acme/bundle:v1.0.0',
      'docker://reg.test/ocm/acme/bundle:v1.1.0',
    ]);
    expect(old.find((reference) => reference.includes('proxy'))).toMatch(/proxy:[0-9a-f]{1,8}$/);
  });

  it('flattens paths like mirroring, and omits images kept by a lock', async () => {
    const flat = await generated('flat', '--max-nested-paths', '2');
    expect(flat).toContain('docker://reg.test/ocm/acme-bundle:v1.0.0');
    const mirrored = await startRegistry({ directory: path.join(sandbox.work, 'kept') });
    try {
      const host = new URL(mirrored.url).host;
      await run('-c', 'newest.yaml', `docker://${host}/ocm`, '--workspace', 'file://kept');
    } finally {
      await mirrored.close();
    }
    const left = await generated('left', '--keep', 'kept/working-dir/opmate.lock.json');
    expect(left).toHaveLength(4);
    expect(left.join()).not.toContain('proxy');
  });

  it('accepts catalogs by digest', async () => {
    const text = await readFile(path.join(sandbox.work, 'disc.yaml'), 'utf8');
    const pinned = text.replace('index:v1', `index@${digestOf('acme/index:v1')}`);
    await sandbox.write({ 'pinned.yaml': pinned });
    const args = ['--generate', '-c', 'pinned.yaml', 'docker://reg.test/ocm', '--workspace', 'file://pinned'];
    expect(await run('delete', ...args)).toMatchObject({ code: 0 });
    await generated('tagged');
    expect(await readFile(listOf('pinned'), 'utf8')).toBe(await readFile(listOf('tagged'), 'utf8'));
  });

  it.each([
    [['--generate'], '--generate: needs --config'],
    [[], '--generate or --delete-yaml-file: missing'],
    [
      ['--generate', '--delete-yaml-file', 'x.yaml'],
      '--generate and --delete-yaml-file cannot be used together',
    ],
    [
      ['--generate', '-c', 'disc.yaml', '--delete-id', '../x'],
      '--delete-id "../x": not a part of a file name',
    ],
    [['--delete-yaml-file', 'x.yaml', '--delete-v1-images'], '--delete-v1-images: needs --generate'],
  ])('refuses %j', async (args, message) => {
    const result = await run('delete', 'docker://reg.test/ocm', ...args);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain(message);
  });

  it('refuses a configuration of images to mirror', async () => {
    const result = await run('delete', '--generate', '-c', 'all.yaml', 'docker://reg.test/ocm');
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('all.yaml:1:1: kind: expected DeleteImageSetConfiguration');
  });
});

describe('mirror delete --delete-yaml-file', () => {
  it('refuses a list with an image outside the target before deleting anything', async () => {
    const registry = await startFaultRegistry();
    try {
      const [first, second] = [`${registry.host}/ocm/a:v1`, `${registry.host}/ocm2/a:v1`];
      const result = await deleteText(listing(item(first), item(second)), `docker://${registry.host}/ocm`);
      expect(result).toMatchObject({ code: 1, stdout: '' });
      const target = `docker://${registry.host}/ocm`;
      expect(result.stderr).toContain(`list.yaml:6:3: "docker://${second}" is not below ${target}`);
      expect(registry.requests).toEqual([]);
    } finally {
      await registry.close();
    }
  });

  it.runIf(hasDockerRegistry)('suggests the setting of a registry that does not allow deletion', async () => {
    const registry = await startDockerRegistry({ allowsDeletion: false });
    try {
      await mirrorAll(registry.host);
      const text = listing(item(`${registry.host}/ocm/acme/bundle:v1.0.0`));
      const result = await deleteText(text, `docker://${registry.host}`);
      expect(result).toMatchObject({ code: 1, stdout: '' });
      expect(result.stderr).toContain(`${registry.host}: the registry does not allow deletion`);
      expect(result.stderr).toContain('REGISTRY_STORAGE_DELETE_ENABLED=true');
      expect(await tagsAt(registry.host, 'ocm/acme/bundle')).toHaveLength(3);
    } finally {
      await registry.close();
    }
  });

  it('repeats deletions that a network or registry breaks off, and can be repeated as a whole', async () => {
    const registry = await startFaultRegistry();
    try {
      const names = ['reset', 'cut', 'busy', 'gone', 'kept'];
      const digests = names.map((name) => {
        const config = {
          mediaType: 'application/vnd.oci.image.config.v1+json',
          digest: sha256(name),
          size: 1,
        };
        const manifest = { schemaVersion: 2, mediaType: ociManifest, config, layers: [] };
        return registry.serveManifest('ocm/a', name, JSON.stringify(manifest));
      });
      const answers: Record<string, FaultResponse[]> = {
        reset: [{ reset: true }, { status: 202 }],
        cut: [{ hangUp: true }, { status: 503 }, { status: 202 }],
        busy: [{ status: 429, headers: { 'retry-after': '0' } }, { status: 204 }],
        gone: [{ status: 404 }],
        kept: [{ status: 400 }, { status: 202 }],
      };
      for (const [i, name] of names.entries())
        registry.on({
          method: 'DELETE',
          path: `/v2/ocm/a/manifests/${digests[i]}`,
          respond: answers[name] as FaultResponse[],
        });
      const text = listing(...names.map((name) => item(`${registry.host}/ocm/a:${name}`)));
      const first = await deleteText(text, `docker://${registry.host}/ocm`);
      expect(first).toMatchObject({ code: 4 });
      expect(first.stdout).toBe(
        ['reset', 'cut', 'busy'].map((name, i) => `${digests[i]} ${registry.host}/ocm/a:${name}\n`).join(''),
      );
      expect(first.stderr).toContain('3 images deleted, 1 not found');
      const again = await deleteText(text, `docker://${registry.host}/ocm`);
      expect(again.stdout).toContain(`${digests[4]} ${registry.host}/ocm/a:kept\n`);
    } finally {
      await registry.close();
    }
  });

  it('refuses images that another tag or an index uses, unless a lock or the user says what is needed', async () => {
    const registry = await startRegistry({ directory: path.join(sandbox.work, 'shared') });
    try {
      const { host } = new URL(registry.url);
      await mirrorAll(host);
      const base = `http://${host}/v2/ocm/acme/bundle/manifests`;
      const put = (reference: string, type: string, body: string | Buffer) =>
        fetch(`${base}/${reference}`, {
          method: 'PUT',
          headers: { 'content-type': type },
          body: new Uint8Array(Buffer.from(body)),
        });
      expect((await put('newest', ociManifest, await manifestAt(host, '1.2.0'))).status).toBe(201);
      const mediaType = 'application/vnd.oci.image.index.v1+json';
      const bytes = await manifestAt(host, '1.1.0');
      const listed = { mediaType: ociManifest, digest: digestOf('acme/bundle:1.1.0'), size: bytes.length };
      const index = JSON.stringify({ schemaVersion: 2, mediaType, manifests: [listed] });
      expect((await put('all', mediaType, index)).status).toBe(201);
      const name = `${host}/ocm/acme/bundle`;
      const text = listing(...widgetVersions.map((version) => item(`${name}:v${version}`)));
      const result = await deleteText(text, `docker://${host}/ocm`);
      expect(result).toMatchObject({ code: 4 });
      expect(result.stdout).toBe(`${digestOf('acme/bundle:1.0.0')} ${name}:v1.0.0\n`);
      expect(result.stderr).toContain(
        `error: ${name}:v1.1.0: not deleted, the index with tag all has it too`,
      );
      expect(result.stderr).toContain(`error: ${name}:v1.2.0: not deleted, tag newest has it too`);
      expect(await tagsAt(host, 'ocm/acme/bundle')).toEqual(['all', 'newest', 'v1.1.0', 'v1.2.0']);
      // The whole list names all its users.
      const whole = listing(...['v1.1.0', 'v1.2.0', 'newest', 'all'].map((tag) => item(`${name}:${tag}`)));
      const checked = await sandbox
        .write({ 'whole.yaml': whole })
        .then(() => run('delete', '--delete-yaml-file', 'whole.yaml', `docker://${host}/ocm`, '--dry-run'));
      expect(checked.stderr).toContain('4 images would be deleted');
      const told = await run(
        'delete',
        '--delete-yaml-file',
        'list.yaml',
        `docker://${host}/ocm`,
        '--allow-shared',
      );
      expect(told).toMatchObject({ code: 0 });
      expect(await tagsAt(host, 'ocm/acme/bundle')).toEqual(['all']);
    } finally {
      await registry.close();
    }
  });

  it('continues after an image that cannot be deleted, and skips catalogs', async () => {
    const registry = await startRegistry({ directory: path.join(sandbox.work, 'part') });
    try {
      const { host } = new URL(registry.url);
      await mirrorAll(host);
      const front = await startFaultRegistry();
      try {
        const broken = digestOf('acme/bundle:1.0.0');
        for (const version of ['1.0.0', '1.1.0'])
          front.serveManifest('ocm/acme/bundle', `v${version}`, await manifestAt(host, version));
        front.gate(({ method, path: url }) => {
          if (method !== 'DELETE') return undefined;
          return { status: url.endsWith(broken) ? 400 : 202 };
        });
        const base = `${front.host}/ocm/acme/bundle`;
        const text = listing(
          item(`${base}:v1.0.0`),
          item(`${base}:v1.1.0`),
          item(`${base}:v9`),
          item(`${front.host}/ocm/acme/index:v1`, 'operatorCatalog'),
        );
        const result = await deleteText(text, `docker://${front.host}/ocm`);
        expect(result.code).toBe(4);
        expect(result.stdout).toBe(`${digestOf('acme/bundle:1.1.0')} ${base}:v1.1.0\n`);
        expect(result.stderr).toContain('1 catalog skipped: catalogs are never deleted');
        expect(result.stderr).toContain(`${base}:v9: not found`);
        expect(result.stderr).toMatch(new RegExp(`${broken}.*400`));
      } finally {
        await front.close();
      }
    } finally {
      await registry.close();
    }
  });
});

async function manifestAt(host: string, version: string): Promise<Buffer> {
  const answer = await fetch(`http://${host}/v2/ocm/acme/bundle/manifests/v${version}`);
  return Buffer.from(await answer.arrayBuffer());
}
