import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConnectionOptions } from '../../../src/oci/registry/connection.js';
import { AppRegistryClient, parseAppRegistryEndpoint } from '../../../src/source/app-registry.js';
import { type AppRegistry, hexOf, startAppRegistry } from '../../support/app-registry.js';
import { type Workbench, failureOf, openWorkbench } from '../../support/connect.js';
import { directoryWith } from '../../support/temporary.js';

let server: AppRegistry;
let bench: Workbench;
beforeEach(async () => {
  server = await startAppRegistry();
  bench = await openWorkbench();
});
afterEach(async () => {
  await bench.close();
  await server.close();
});

type ClientOptions = Partial<ConnectionOptions> & { token?: string; namespace?: string };

function clientOf({ token, namespace = 'ns', ...options }: ClientOptions = {}) {
  const transport = bench.connect({ maxAttempts: 3, ...options }).plainTransport();
  return new AppRegistryClient(
    transport,
    { endpoint: parseAppRegistryEndpoint(server.endpoint), namespace },
    { token },
  );
}

/** Has the server answer every request whose path matches like this. */
function answer(pattern: RegExp, respond: (response: ServerResponse, count: number) => void): void {
  let count = 0;
  server.misbehave = (request, response) => {
    if (!pattern.test(request.url ?? '')) return false;
    respond(response, ++count);
    return true;
  };
}

const list = (items: unknown) => (response: ServerResponse) => void response.end(JSON.stringify(items));

describe('source/app-registry: client', () => {
  const blob = Buffer.from('an archive');

  it('lists packages, finds the content of a release and downloads it', async () => {
    server.serve('ns', 'b', { '1.0.0': Buffer.from('old'), '1.10.0': blob, '1.9.0': Buffer.from('old') });
    server.serve('ns', 'a', { latest: blob, '0.1.0-rc1': blob });
    const client = clientOf();
    const packages = await client.listPackages();
    expect(packages).toEqual([
      { name: 'a', release: '0.1.0-rc1' },
      { name: 'b', release: '1.10.0' },
    ]);
    const content = await client.findContent({ name: 'b', release: '1.10.0' });
    expect(content).toEqual({ sha256: hexOf(blob), size: blob.length });
    const file = path.join(await directoryWith(), 'b.tar.gz');
    await client.download('b', content, file);
    expect(await readFile(file)).toEqual(blob);
  });

  it('takes the default of the registry, and what is asked for only', async () => {
    answer(
      /namespace=ns/,
      list([
        { name: 'ns/a', default: '1.0.0', releases: ['2.0.0', '1.0.0'] },
        { name: 'other/b', default: '1.0.0' },
        { name: 'c' },
      ]),
    );
    expect(await clientOf().listPackages()).toEqual([
      { name: 'a', release: '1.0.0' },
      { name: 'c', release: undefined },
    ]);
  });

  it('understands servers that know only the other form of a request', async () => {
    const content = {
      digest: `sha256:${hexOf(blob)}`,
      mediaType: 'application/vnd.cnr.package.helm.v0.tar+gzip',
    };
    server.misbehave = ({ url }, response) => {
      const known: Record<string, unknown> = {
        '/cnr/api/v1/packages/ns/a': [{ release: '1.0.0' }, { release: '1.2.0' }],
        '/cnr/api/v1/packages/ns/a/1.2.0/helm': { content },
      };
      const found = known[url ?? ''];
      response.writeHead(found === undefined ? 404 : 200).end(JSON.stringify(found ?? {}));
      return true;
    };
    expect(await clientOf().findContent({ name: 'a', release: undefined })).toEqual({
      sha256: hexOf(blob),
      size: undefined,
    });
  });

  it.each([
    ['no JSON', '<html>', 'SYNTAX', 'response: invalid JSON'],
    ['an object', '{}', 'INVALID', 'not a list of packages'],
    ['null', 'null', 'INVALID', 'not a list of packages'],
    ['a list of anything', '[1]', 'INVALID', '[0]: response is not a package with a name'],
    ['names of another type', '[{"name":{}}]', 'INVALID', 'a package with a name'],
    ['a name that is a path', '[{"name":"ns/../../etc"}]', 'UNSAFE', '"../../etc" is not a package name'],
    ['a name that hides', '[{"name":"ns/.x"}]', 'UNSAFE', '".x" is not a package name'],
    ['a name with a query', '[{"name":"ns/a?b"}]', 'UNSAFE', 'is not a package name'],
  ])('refuses a list that is %s', async (_, body, code, message) => {
    answer(/namespace=/, (response) => void response.end(body));
    expect(await failureOf(clientOf().listPackages())).toMatchObject({
      code,
      message: expect.stringContaining(message),
    });
  });

  it('refuses lists that are too long or do not end', async () => {
    answer(/namespace=many/, list(Array.from({ length: 10_001 }, (_, i) => ({ name: `p${i}` }))));
    expect(await failureOf(clientOf({ namespace: 'many' }).listPackages())).toMatchObject({ code: 'LIMIT' });
    answer(/namespace=endless/, (response) => {
      const chunk = Buffer.alloc(1024 * 1024, ' ');
      const more = (): void => {
        while (!response.destroyed && response.write(chunk));
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    });
    expect(await failureOf(clientOf({ namespace: 'endless' }).listPackages())).toMatchObject({
      code: 'LIMIT',
      message: expect.stringContaining('larger than'),
    });
  });

  it.each([
    ['nothing', '[]', 'not a release with its content'],
    ['another type', '[{"content":[]}]', 'not a release with its content'],
    [
      'a digest that is a path',
      '[{"content":{"digest":"../../x"}}]',
      'content.digest: response is not a SHA-256',
    ],
    ['no digest', '[{"content":{}}]', 'content.digest: response is not a SHA-256'],
  ])('refuses a release that is %s', async (_, body, message) => {
    answer(/ns\/a\/1\.0\.0/, (response) => void response.end(body));
    expect(await failureOf(clientOf().findContent({ name: 'a', release: '1.0.0' }))).toMatchObject({
      code: 'INVALID',
      message: expect.stringContaining(message),
    });
  });

  it('never makes a path of a release', async () => {
    expect(await failureOf(clientOf().findContent({ name: 'a', release: '../../x' }))).toMatchObject({
      code: 'UNSAFE',
    });
    expect(server.requests).toEqual([]);
  });

  it('takes no blob that is other, longer or larger than it may be', async () => {
    const file = path.join(await directoryWith(), 'file');
    const sha256 = hexOf(blob);
    const download = (size?: number) => clientOf().download('a', { sha256, size }, file);
    answer(/blobs/, (response) => void response.end('another one'));
    expect(await failureOf(download())).toMatchObject({
      code: 'DIGEST',
      message: expect.stringContaining('mismatch'),
    });
    expect(await failureOf(download(5))).toMatchObject({
      code: 'DIGEST',
      message: expect.stringContaining('got more'),
    });
    expect(await failureOf(download(1e12))).toMatchObject({ code: 'LIMIT' });
  });

  it('begins a download again that was cut, and gives up in the end', async () => {
    const file = path.join(await directoryWith(), 'file');
    const content = { sha256: hexOf(blob), size: blob.length };
    const cut = (response: ServerResponse): void => {
      response.writeHead(200, { 'content-length': blob.length });
      response.write(blob.subarray(0, 3), () => response.destroy());
    };
    answer(/blobs/, (response, count) => void (count < 3 ? cut(response) : response.end(blob)));
    await clientOf().download('a', content, file);
    expect(await readFile(file)).toEqual(blob);
    answer(/blobs/, cut);
    expect(await failureOf(clientOf().download('a', content, file))).toMatchObject({ code: 'NETWORK' });
  });

  it('tries again what is refused for a while', async () => {
    answer(/namespace=/, (response, count) => {
      const [status, headers] = count === 1 ? [429, { 'retry-after': '0' }] : [500, {}];
      if (count < 3) response.writeHead(status as number, headers as Record<string, string>).end();
      else list([{ name: 'ns/a', default: '1' }])(response);
    });
    expect(await clientOf().listPackages()).toHaveLength(1);
    answer(/namespace=/, (response) => void response.writeHead(500).end());
    expect(await failureOf(clientOf().listPackages())).toMatchObject({ code: 'REGISTRY' });
    answer(/namespace=/, (response) => void response.writeHead(410).end());
    expect(await failureOf(clientOf().listPackages())).toMatchObject({
      code: 'NOT_FOUND',
      hint: expect.stringContaining('options.manifests DIR or options.bundles LIST'),
    });
  });

  it('keeps the token to its origin, and out of every message', async () => {
    const token = 'verbatim-5up3rs3cr3t';
    const elsewhere = await startAppRegistry();
    try {
      answer(/namespace=/, (response) => {
        response.writeHead(307, { location: `${elsewhere.endpoint}/api/v1/packages?namespace=ns` }).end();
      });
      await clientOf({ token }).listPackages();
      expect(server.requests.at(-1)?.authorization).toBe(token);
      expect(elsewhere.requests.map(({ authorization }) => authorization)).toEqual([undefined]);
    } finally {
      await elsewhere.close();
    }
    answer(/namespace=/, (response) => {
      response.writeHead(401).end(JSON.stringify({ errors: [{ message: `what is ${token}?` }] }));
    });
    const failure = await failureOf(clientOf({ token }).listPackages());
    expect(failure).toMatchObject({ code: 'AUTH', message: expect.stringContaining('what is ***?') });
    expect(bench.logged.join('\n')).not.toContain(token);
    expect(() => clientOf({ token: 'a\r\nb: c' })).toThrow(
      'options.token: characters not allowed in a header',
    );
  });

  it.each(['ftp://a/b', 'quay.io/cnr', 'https://user:pass@a/b', 'https://a/b?c', 'https://a/#b'])(
    'refuses the endpoint %s',
    (text) => {
      expect(() => parseAppRegistryEndpoint(text)).toThrow('not a URL of an app registry');
    },
  );
});
