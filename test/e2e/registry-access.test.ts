import { chmod, mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltImage } from '../../src/oci/image/image-builder.js';
import { createAuthority } from '../support/certificates.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, basic, startFaultRegistry } from '../support/fault-registry.js';
import { startProxyServer } from '../support/proxy-server.js';
import { widgetCatalog } from './catalogs.js';
import { makeCatalogImage, serveBuilt } from './images.js';

const sandbox = useSandbox();
const authority = createAuthority('test authority of access');
const stranger = createAuthority('another test authority');
const opened: FaultRegistry[] = [];
let image: BuiltImage;
let expected = '';

/** A registry with the catalog at `ns/widget:v1`. */
async function openRegistry(options: { tls?: boolean } = {}): Promise<FaultRegistry> {
  const tls = options.tls === true ? { tls: authority.issue({ names: ['127.0.0.1', 'registry.test'] }) } : {};
  const registry = await startFaultRegistry(tls);
  opened.push(registry);
  serveBuilt(registry, 'ns/widget', 'v1', image);
  return registry;
}

const inHome = async (file: string, content: string | object): Promise<string> => {
  const whole = path.join(sandbox.home, file);
  await mkdir(path.dirname(whole), { recursive: true });
  await writeFile(whole, typeof content === 'string' ? content : JSON.stringify(content));
  return whole;
};

beforeAll(async () => {
  image = await makeCatalogImage({ 'all.json': widgetCatalog });
  await sandbox.write({
    'plain/all.json': widgetCatalog,
    'ca.crt': authority.cert,
    'other.crt': stranger.cert,
  });
  expected = (await sandbox.run(['render', 'plain'])).stdout;
});
afterAll(async () => {
  for (const registry of opened) await registry.close();
});

describe('certificates', () => {
  it('are read from --ca-file, --cert-dir and SSL_CERT_FILE', async () => {
    const { host } = await openRegistry({ tls: true });
    const reference = `${host}/ns/widget:v1`;
    await inHome(`certs/${host}/ca.crt`, authority.cert);
    const caFile = path.join(sandbox.work, 'ca.crt');
    const runs = await Promise.all([
      sandbox.run(['render', reference, '--ca-file', 'ca.crt']),
      sandbox.run(['render', reference, '--cert-dir', path.join(sandbox.home, 'certs')]),
      sandbox.run(['render', reference], { env: { SSL_CERT_FILE: caFile } }),
      sandbox.run(['render', reference, '--skip-tls-verify']),
    ]);
    for (const run of runs) expect(run).toEqual({ code: 0, stdout: expected, stderr: '' });
  });

  it('that cannot be verified are refused with the name of their issuer', async () => {
    const { host } = await openRegistry({ tls: true });
    for (const flags of [[], ['--ca-file', 'other.crt']]) {
      const { code, stdout, stderr } = await sandbox.run(['render', `${host}/ns/widget:v1`, ...flags]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain('test authority of access');
      expect(stderr).toContain('--ca-file');
    }
  });

  it('are read from existing PEM files only', async () => {
    await sandbox.write({ 'noise.crt': 'no certificate' });
    for (const file of ['none.crt', 'noise.crt']) {
      const { code, stderr } = await sandbox.run(['render', '127.0.0.1:1/ns/x:v1', '--ca-file', file]);
      expect(code).toBe(1);
      expect(stderr).toContain(file);
    }
  });
});

describe('plain HTTP', () => {
  it('is used only on request', async () => {
    const registry = await openRegistry();
    const reference = `${registry.host}/ns/widget:v1`;
    for (const flags of [[], ['--skip-tls-verify']]) {
      const { code, stderr } = await sandbox.run(['render', reference, ...flags]);
      expect(code).toBe(1);
      expect(stderr).toContain('speaks plain HTTP, not HTTPS');
      expect(stderr).toContain('--use-http');
    }
    expect(registry.requests).toEqual([]);
    for (const flag of ['--use-http', '--skip-tls']) {
      expect(await sandbox.run(['render', reference, flag])).toMatchObject({ code: 0, stdout: expected });
    }
  });

  it('is refused by an HTTPS port, with a clear message', async () => {
    const { host } = await openRegistry({ tls: true });
    const { code, stderr } = await sandbox.run(['render', '--use-http', `${host}/ns/widget:v1`]);
    expect(code).toBe(1);
    expect(stderr).toContain('speaks HTTPS, not plain HTTP');
  });
});

describe('proxies', () => {
  it('are used for HTTPS_PROXY and bypassed for NO_PROXY', async () => {
    const { port, host } = await openRegistry({ tls: true });
    const proxy = await startProxyServer({ require: 'user:pass word' });
    try {
      const env = { HTTPS_PROXY: `http://user:pass%20word@${proxy.host}` };
      const proxied = await sandbox.run(
        ['render', `registry.test:${port}/ns/widget:v1`, '--ca-file', 'ca.crt'],
        { env },
      );
      expect(proxied).toEqual({ code: 0, stdout: expected, stderr: '' });
      expect(new Set(proxy.requests)).toEqual(new Set([`CONNECT registry.test:${port}`]));
      const before = proxy.requests.length;
      for (const noProxy of ['127.0.0.1', '127.0.0.0/8', '*']) {
        const direct = await sandbox.run(['render', `${host}/ns/widget:v1`, '--ca-file', 'ca.crt'], {
          env: { ...env, NO_PROXY: noProxy },
        });
        expect(direct.code).toBe(0);
      }
      expect(proxy.requests).toHaveLength(before);
    } finally {
      await proxy.close();
    }
  });

  it('are used for HTTP_PROXY with plain HTTP', async () => {
    const { port } = await openRegistry();
    const proxy = await startProxyServer();
    try {
      const reference = `registry.test:${port}/ns/widget:v1`;
      const run = await sandbox.run(['render', '--use-http', reference], { env: { http_proxy: proxy.host } });
      expect(run).toEqual({ code: 0, stdout: expected, stderr: '' });
      expect(proxy.requests[0]).toContain(`http://registry.test:${port}/v2/`);
    } finally {
      await proxy.close();
    }
  });

  it('that require a password or refuse are named', async () => {
    const strict = await startProxyServer({ require: 'user:password' });
    const closed = await startProxyServer({ refuse: { status: 403 } });
    try {
      for (const [proxy, text] of [
        [strict, 'requires authentication (407)'],
        [closed, 'refused the connection (403)'],
      ] as const) {
        const { code, stderr } = await sandbox.run(['render', 'registry.test/ns/x:v1'], {
          env: { HTTPS_PROXY: `http://${proxy.host}` },
        });
        expect(code).toBe(1);
        expect(stderr).toContain(`${proxy.host} ${text}`);
      }
    } finally {
      await strict.close();
      await closed.close();
    }
  });
});

describe('credentials', () => {
  const entry = (name: string): object => ({ auth: Buffer.from(`${name}:secret`).toString('base64') });
  const user = (authorization: string | undefined): string =>
    Buffer.from(authorization?.replace('Basic ', '') ?? '', 'base64')
      .toString()
      .split(':')[0] as string;

  /** A registry that takes any user; which one came is told by `users`. */
  async function openGuarded(): Promise<{ registry: FaultRegistry; users: () => string[] }> {
    const registry = await openRegistry();
    registry.gate((request) =>
      request.authorization === undefined
        ? { status: 401, headers: { 'www-authenticate': 'Basic realm="test"' } }
        : undefined,
    );
    return { registry, users: () => [...new Set(registry.authorizations().map(user))] };
  }

  it('are read from --authfile, REGISTRY_AUTH_FILE, DOCKER_CONFIG, home and runtime directory', async () => {
    const { registry } = await openGuarded();
    const file = (name: string): object => ({ auths: { [registry.host]: entry(name) } });
    const places: { name: string; flags?: string[]; env?: Record<string, string> }[] = [
      { name: 'runtime', env: { XDG_RUNTIME_DIR: path.join(sandbox.home, 'run') } },
      { name: 'home' },
      { name: 'docker', env: { DOCKER_CONFIG: path.join(sandbox.home, 'docker') } },
      { name: 'registry', env: { REGISTRY_AUTH_FILE: await inHome('registry.json', file('registry')) } },
      { name: 'flag', flags: ['--authfile', await inHome('flag.json', file('flag'))] },
    ];
    const env: Record<string, string> = {};
    const flags: string[] = [];
    // Each place wins over those before it; its file appears when its turn comes.
    for (const place of places) {
      if (place.name === 'runtime') await inHome('run/containers/auth.json', file('runtime'));
      if (place.name === 'home') await inHome('.docker/config.json', file('home'));
      if (place.name === 'docker') await inHome('docker/config.json', file('docker'));
      Object.assign(env, place.env);
      flags.push(...(place.flags ?? []));
      registry.requests.length = 0;
      const run = await sandbox.run(['render', '--use-http', `${registry.host}/ns/widget:v1`, ...flags], {
        env,
      });
      expect([place.name, run]).toEqual([place.name, { code: 0, stdout: expected, stderr: '' }]);
      expect(new Set(registry.authorizations().map(user))).toEqual(new Set([place.name]));
    }
  });

  it('are those of the longest path', async () => {
    const { registry, users } = await openGuarded();
    const { host } = registry;
    const auths = {
      [host]: entry('whole'),
      [`${host}/ns`]: entry('namespace'),
      [`${host}/ns/widget`]: entry('repository'),
      [`${host}/ns/widget-other`]: entry('neighbour'),
    };
    await sandbox.write({ 'auth.json': { auths } });
    await sandbox.run(['render', '--use-http', '--authfile', 'auth.json', `${host}/ns/widget:v1`]);
    expect(users()).toEqual(['repository']);
  });

  it('come from a helper on PATH', async () => {
    const { registry, users } = await openGuarded();
    const bin = path.join(sandbox.home, 'bin');
    const helper = await inHome(
      'bin/docker-credential-test',
      '#!/bin/sh\nread server\necho "{\\"ServerURL\\":\\"$server\\",\\"Username\\":\\"helped\\",\\"Secret\\":\\"s\\"}"\n',
    );
    await chmod(helper, 0o755);
    const env = { PATH: `${bin}:${process.env['PATH']}` };
    for (const config of [{ credsStore: 'test' }, { credHelpers: { [registry.host]: 'test' } }]) {
      await sandbox.write({ 'helper.json': config });
      const args = ['render', '--use-http', '--authfile', 'helper.json', `${registry.host}/ns/widget:v1`];
      expect(await sandbox.run(args, { env })).toEqual({ code: 0, stdout: expected, stderr: '' });
    }
    expect(users()).toEqual(['helped']);
    await sandbox.write({ 'helper.json': { credsStore: 'missing' } });
    const broken = await sandbox.run([
      'render',
      '--use-http',
      '--authfile',
      'helper.json',
      `${registry.host}/ns/widget:v1`,
    ]);
    expect(broken.code).toBe(1);
    expect(broken.stderr).toContain('docker-credential-missing');
  });

  it('that are rejected are named by their file and key', async () => {
    const registry = await openRegistry();
    registry.requireBasic('right', 'right');
    await sandbox.write({ 'wrong.json': { auths: { [`${registry.host}/ns`]: entry('wrong') } } });
    const args = ['render', '--use-http', `${registry.host}/ns/widget:v1`];
    const wrong = await sandbox.run([...args, '--authfile', 'wrong.json']);
    expect(wrong).toMatchObject({ code: 1, stdout: '' });
    expect(wrong.stderr).toContain('wrong.json');
    expect(wrong.stderr).toContain(`${registry.host}/ns`);
    const none = await sandbox.run(args, { env: { HOME: sandbox.temporary } });
    expect(none).toMatchObject({ code: 1, stdout: '' });
    expect(registry.authorizations()).toContain(basic('wrong', 'secret'));
  });
});

describe('registries.conf', () => {
  const withConf = async (text: string, args: string[]) => {
    const file = await inHome('registries.conf', text);
    return sandbox.run(args, { env: { CONTAINERS_REGISTRIES_CONF: file } });
  };

  it('redirects a prefix, to mirrors first', async () => {
    const main = await openRegistry();
    const mirror = await openRegistry();
    const conf = `
[[registry]]
prefix = "quay.test/team"
location = "${main.host}/ns"
insecure = true
[[registry.mirror]]
location = "${mirror.host}/ns"
insecure = true
`;
    const first = await withConf(conf, ['render', 'quay.test/team/widget:v1']);
    expect(first).toMatchObject({ code: 0, stdout: expected });
    const asked = ({ requests }: FaultRegistry): boolean =>
      requests.some(({ path: at }) => at.startsWith('/v2/ns/widget/'));
    expect([asked(mirror), asked(main)]).toEqual([true, false]);
    mirror.on({ path: /^\/v2\/ns/, respond: { status: 404 } });
    expect(await withConf(conf, ['render', 'quay.test/team/widget:v1'])).toMatchObject({
      code: 0,
      stdout: expected,
    });
    expect(asked(main)).toBe(true);
  });

  it('uses insecure for plain HTTP and unverified HTTPS', async () => {
    for (const { host } of [await openRegistry(), await openRegistry({ tls: true })]) {
      const conf = `[[registry]]\nlocation = "${host}"\ninsecure = true\n`;
      expect(await withConf(conf, ['render', `${host}/ns/widget:v1`])).toMatchObject({
        code: 0,
        stdout: expected,
      });
    }
  });

  it('refuses blocked registries and unreadable files by name', async () => {
    const { host, requests } = await openRegistry();
    const args = ['render', '--use-http', `${host}/ns/widget:v1`];
    const blocked = await withConf(`[[registry]]\nlocation = "${host}"\nblocked = true\n`, args);
    expect(blocked).toMatchObject({ code: 1, stdout: '' });
    expect(blocked.stderr).toContain('blocked');
    const broken = await withConf('[[registry]\nlocation = ', args);
    expect(broken).toMatchObject({ code: 1, stdout: '' });
    expect(broken.stderr).toContain('registries.conf:1');
    const missing = await sandbox.run(args, { env: { CONTAINERS_REGISTRIES_CONF: '/none.conf' } });
    expect(missing).toMatchObject({ code: 1, stdout: '' });
    expect(missing.stderr).toContain('/none.conf: no such file or directory');
    expect(requests).toEqual([]);
  });
});

describe('the blob cache', () => {
  const blobRequests = ({ requests }: FaultRegistry): string[] =>
    requests.map((request) => request.path).filter((at) => at.includes('/blobs/'));

  it.each(['OPMATE_CACHE_DIR', 'OLM_CACHE_DIR'])(
    'named by %s spares the second run all blobs',
    async (variable) => {
      const registry = await openRegistry();
      const env = { [variable]: path.join(sandbox.home, variable) };
      const args = ['render', '--use-http', `${registry.host}/ns/widget:v1`];
      expect(await sandbox.run(args, { env })).toMatchObject({ code: 0, stdout: expected });
      const first = blobRequests(registry).length;
      expect(first).toBe(2);
      expect(await sandbox.run(args, { env })).toEqual({ code: 0, stdout: expected, stderr: '' });
      expect(blobRequests(registry)).toHaveLength(first);
    },
  );

  it('repairs damaged and truncated entries, and is shared by concurrent processes', async () => {
    const registry = await openRegistry();
    const cache = path.join(sandbox.home, 'damaged');
    const args = ['render', '--use-http', `${registry.host}/ns/widget:v1`];
    const run = () => sandbox.run(args, { env: { OPMATE_CACHE_DIR: cache } });
    const runs = await Promise.all(Array.from({ length: 5 }, run));
    for (const { code, stdout } of runs) expect({ code, stdout }).toEqual({ code: 0, stdout: expected });
    const blobs = (await readdir(path.join(cache, 'blobs'), { recursive: true, withFileTypes: true }))
      .filter((found) => found.isFile())
      .map((found) => path.join(found.parentPath, found.name));
    expect(blobs.length).toBeGreaterThanOrEqual(2);
    for (const [i, file] of blobs.entries()) {
      const bytes = await readFile(file);
      await writeFile(file, i % 2 === 0 ? bytes.subarray(1) : Buffer.from(bytes).fill(0, 0, 8));
    }
    expect(await run()).toMatchObject({ code: 0, stdout: expected });
    const before = blobRequests(registry).length;
    expect(await run()).toEqual({ code: 0, stdout: expected, stderr: '' });
    expect(blobRequests(registry)).toHaveLength(before);
    expect(await readdir(path.join(cache, 'tmp'))).toEqual([]);
  });

  it('does not stop the command if unusable', async () => {
    const registry = await openRegistry();
    await sandbox.write({ 'a-file': '' });
    const { code, stdout, stderr } = await sandbox.run(
      ['render', '--use-http', `${registry.host}/ns/widget:v1`],
      {
        env: { OPMATE_CACHE_DIR: 'a-file' },
      },
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: expected });
    expect(stderr).toMatch(/^warn: .*a-file/);
  });
});

describe('the cache of catalog layers', () => {
  const layerOf = (built: BuiltImage): string => `/v2/ns/widget/blobs/${built.layers[0]?.descriptor.digest}`;
  const fetched = ({ requests }: FaultRegistry): number =>
    requests.filter((request) => request.path === layerOf(image)).length;
  const unset = { OPMATE_CATALOG_CACHE: undefined };

  it('is used by default, and checks access with the registry each time', async () => {
    const registry = await openRegistry();
    const reference = `${registry.host}/ns/widget:v1`;
    for (const args of [
      ['render', reference],
      ['list', 'packages', reference],
      ['validate', reference],
    ])
      expect(await sandbox.run([...args, '--use-http'], { env: unset })).toMatchObject({ code: 0 });
    expect(fetched(registry)).toBe(1);
    const kept = await readdir(path.join(sandbox.home, '.cache/opmate/layers/blobs/sha256'), {
      recursive: true,
    });
    expect(kept.filter((name) => layerOf(image).endsWith(path.basename(name)))).toHaveLength(1);
    registry.on({ path: /\/manifests\//, respond: { status: 403 } });
    expect(await sandbox.run(['render', reference, '--use-http'], { env: unset })).toMatchObject({ code: 1 });
  });

  it('stores layers in --catalog-cache, or none', async () => {
    const registry = await openRegistry();
    const args = ['render', `${registry.host}/ns/widget:v1`, '--use-http', '--catalog-cache'];
    for (const directory of ['layers', 'layers', 'none', 'none'])
      expect(await sandbox.run([...args, directory], { env: unset })).toEqual({
        code: 0,
        stdout: expected,
        stderr: '',
      });
    expect(fetched(registry)).toBe(3);
  });

  it('fetches a damaged layer again, and works without a writable directory', async () => {
    const registry = await openRegistry();
    await sandbox.write({ 'no-directory': '' });
    const run = (directory: string) =>
      sandbox.run(['render', `${registry.host}/ns/widget:v1`, '--use-http', '--catalog-cache', directory]);
    await Promise.all([run('damaged-layers'), run('damaged-layers'), run('damaged-layers')]);
    const before = fetched(registry);
    const root = path.join(sandbox.work, 'damaged-layers', 'blobs');
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    for (const entry of entries.filter((each) => each.isFile()))
      await writeFile(path.join(entry.parentPath, entry.name), 'other');
    expect(await run('damaged-layers')).toEqual({ code: 0, stdout: expected, stderr: '' });
    expect(fetched(registry)).toBe(before + 1);
    expect(await run('no-directory')).toEqual({ code: 0, stdout: expected, stderr: '' });
    expect(await run('/dev/full')).toEqual({ code: 0, stdout: expected, stderr: '' });
  });
});

describe('responses of registries', () => {
  it('are explained, and only some are retried', async () => {
    const registry = await openRegistry();
    const missing = await sandbox.run(['render', '--use-http', `${registry.host}/ns/widget:v9`]);
    expect(missing).toMatchObject({ code: 1, stdout: '' });
    expect(missing.stderr).toContain('v9');
    expect(registry.requests).toHaveLength(1);

    registry.on({
      path: /\/manifests\/v1$/,
      times: 2,
      respond: { status: 503, headers: { 'retry-after': '0' } },
    });
    expect(await sandbox.run(['render', '--use-http', `${registry.host}/ns/widget:v1`])).toMatchObject({
      code: 0,
    });

    const layer = image.layers[0]?.bytes ?? Buffer.alloc(0);
    registry.on({
      path: `/v2/ns/widget/blobs/${image.layers[0]?.descriptor.digest}`,
      times: 1,
      respond: { body: layer, truncateAfter: 100 },
    });
    expect(await sandbox.run(['render', '--use-http', `${registry.host}/ns/widget:v1`])).toMatchObject({
      code: 0,
      stdout: expected,
    });
  });

  it('with a wrong digest or size are refused', async () => {
    const registry = await openRegistry();
    const layer = image.layers[0];
    const bytes = Buffer.from(layer?.bytes ?? '');
    bytes[bytes.length - 12] = (bytes[bytes.length - 12] ?? 0) ^ 1;
    registry.on({ path: `/v2/ns/widget/blobs/${layer?.descriptor.digest}`, respond: { body: bytes } });
    const cache = path.join(sandbox.home, 'poisoned');
    const { code, stdout, stderr } = await sandbox.run(
      ['render', '--use-http', `${registry.host}/ns/widget:v1`],
      {
        env: { OPMATE_CACHE_DIR: cache },
      },
    );
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(layer?.descriptor.digest);
    const kept = await readdir(cache, { recursive: true });
    expect(kept.filter((name) => name.includes(layer?.descriptor.digest.slice(7) ?? ''))).toEqual([]);
    expect(await sandbox.leftovers()).toEqual([]);
  });
});
