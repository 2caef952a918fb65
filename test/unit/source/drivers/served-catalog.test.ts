import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defaultArchiveLimits } from '../../../../src/archive/limits.js';
import { render } from '../../../../src/api/render-catalog.js';
import { validate } from '../../../../src/api/validate-catalog.js';
import { openPlace, openResolved, resolvePlace } from '../../../../src/source/resolve-place.js';
import { type Session, openSourceSession } from '../../../../src/source/session.js';
import { openSource } from '../../../../src/source/source.js';
import { widgetCatalog } from '../../../e2e/catalogs.js';
import { serve } from '../../../e2e/served-catalogs.js';
import { failureOf } from '../../../support/connect.js';
import {
  type FaultResponse,
  type FaultRegistry,
  startFaultRegistry,
} from '../../../support/fault-registry.js';
import { directoryWith } from '../../../support/temporary.js';
import { sessionOptions } from '../session-options.js';

const catalog = {
  'a.yaml': widgetCatalog,
  'z/b.json':
    '{"entries":[{"message":"gone soon","reference":{"schema":"olm.package"}}],"package":"widget","schema":"olm.deprecations"}' +
    '{"big":12345678901234567890,"package":"widget","schema":"example.com/notes","text":"<&>"}',
};
const blob = (name: string): string => `{"name":"${name}","schema":"olm.package"}\n`;

let session: Session;
let temporary: string;
let server: FaultRegistry;

beforeEach(async () => {
  const options = await sessionOptions({ registry: { retryTimeoutMs: 2000 } });
  temporary = options.temporaryDirectory;
  session = await openSourceSession(options);
  server = await startFaultRegistry();
});

afterEach(async () => {
  await session.close();
  await server.close();
  expect(await readdir(temporary)).toEqual([]);
});

async function rendered(reference: string, format: 'json' | 'yaml' = 'json'): Promise<string> {
  let text = '';
  for await (const piece of render([reference], session, { format })) text += piece.toString();
  return text;
}

/** The failure of reading the catalog `x` of a server that responds so. */
async function refusal(
  respond: FaultResponse,
  path = '/catalogs/x',
): Promise<{ code: unknown; text: string }> {
  server.on({ path: `${path}/api/v1/all`, respond });
  const error = await failureOf(rendered(server.origin + path));
  return { code: error.code, text: `${error.message}${error.hint === undefined ? '' : `; ${error.hint}`}` };
}

describe('source/drivers/served-catalog', () => {
  it('renders what the directory renders, byte for byte', async () => {
    const directory = await directoryWith(catalog);
    const { url } = await serve({ widgets: catalog });
    for (const format of ['json', 'yaml'] as const) {
      const expected = await rendered(directory, format);
      for (const base of ['/catalogs/widgets', '/catalogs/widgets/', '/catalogs/widgets/api/v1/all']) {
        expect(await rendered(url + base, format)).toBe(expected);
      }
    }
    expect(await validate(`${url}/catalogs/widgets`, session)).toEqual(
      expect.objectContaining({ passed: true }),
    );
  });

  it('asks with what it knows, and takes 304 for an answer', async () => {
    const etag = '"one"';
    server.on({
      path: '/catalogs/x/api/v1/all',
      respond: ({ headers }) =>
        headers['if-none-match'] === etag ? { status: 304 } : { body: blob('widget'), headers: { etag } },
    });
    const place = { kind: 'served', url: `${server.origin}/catalogs/x` } as const;
    const first = await resolvePlace(place, session);
    const source = await openResolved(first);
    expect(source.catalog.name).toBe(`${server.origin}/catalogs/x/api/v1`);
    await source.close();
    await first.close();
    const second = await resolvePlace(place, session, { known: first.state });
    expect(second.state).toEqual(first.state);
    expect(first.state.ref).toMatch(/\/catalogs\/x@sha256:[0-9a-f]{64}$/);
    await second.close();
  });

  it('takes a catalog compressed, and no more of it than of any other', async () => {
    const text = blob('widget').repeat(20_000);
    const respond = { body: gzipSync(text), headers: { 'content-encoding': 'gzip', etag: '"a-gzip"' } };
    server.on({ path: '/catalogs/x/api/v1/all', respond });
    const place = { kind: 'served', url: `${server.origin}/catalogs/x` } as const;
    const resolved = await resolvePlace(place, session);
    expect(resolved.state.validator).toBe('"a-gzip"');
    expect(resolved.state.id).toBe(`served sha256:${createHash('sha256').update(text).digest('hex')}`);
    await resolved.close();
    expect(server.requests.at(-1)?.headers['accept-encoding']).toBe('gzip');
    const limits = { ...defaultArchiveLimits, maxUnpackedSize: 100_000 };
    const error = await failureOf(resolvePlace(place, { ...session, limits }));
    expect(error).toMatchObject({ code: 'LIMIT', hint: 'raise it with limits.maxUnpackedSize' });
  });

  it('names the response and the line of what is no blob', async () => {
    const respond = { body: `${blob('widget')}{"schema":` };
    server.on({ path: '/catalogs/x/api/v1/all', respond });
    expect(await failureOf(rendered(`${server.origin}/catalogs/x`))).toMatchObject({
      code: 'SYNTAX',
      file: `${server.origin}/catalogs/x/api/v1/all`,
      line: 2,
    });
  });

  it.each([
    [
      'a page',
      { body: '<html>', headers: { 'content-type': 'text/html; charset=utf-8' } },
      'INVALID',
      'expected JSON Lines, got "text/html"',
    ],
    ['a page without its type', { body: '<html></html>' }, 'INVALID', 'expected JSON Lines; use the base'],
    ['YAML', { body: 'schema: olm.package\nname: a\n' }, 'INVALID', 'expected JSON Lines'],
    [
      'a content encoding',
      { body: gzipSync(blob('a')), headers: { 'content-encoding': 'br' } },
      'INVALID',
      'unsupported content encoding "br"',
    ],
    [
      'compressed bytes that end early',
      { body: gzipSync(blob('a')).subarray(0, -9), headers: { 'content-encoding': 'gzip' } },
      'SYNTAX',
      'unexpected end',
    ],
    ['a missing catalog', { status: 404 }, 'NOT_FOUND', 'use the base URL of a served catalog'],
    ['missing credentials', { status: 401 }, 'AUTH', 'authentication required (401)'],
    ['a cut connection', { body: blob('widget').repeat(100), truncateAfter: 50 }, 'NETWORK', 'cut'],
    [
      'a redirect to a private address',
      { status: 302, headers: { location: 'http://10.0.0.1/x' } },
      'UNSAFE',
      'private',
    ],
    [
      'a redirect to a file',
      { status: 302, headers: { location: 'file:///etc/passwd' } },
      undefined,
      'redirect',
    ],
  ] as [string, FaultResponse, string | undefined, string][])(
    'refuses %s',
    async (_what, respond, code, text) => {
      const refused = await refusal(respond);
      expect(refused.text).toContain(text);
      if (code !== undefined) expect(refused.code).toBe(code);
    },
  );

  it('fetches one package where the server has queries, and all where it has none', async () => {
    const { url } = await serve({ both: { 'a.json': widgetCatalog, 'b.json': blob('other') } });
    const namesAt = async (base: string): Promise<Set<string>> => {
      const source = await openPlace({ kind: 'served', url: base, package: 'widget' }, session);
      if (source.kind !== 'catalog') throw new Error('not a catalog');
      const names = new Set<string>();
      for await (const meta of source.catalog.metas())
        names.add(meta.package === '' ? meta.name : meta.package);
      await source.close();
      return names;
    };
    expect(await namesAt(`${url}/catalogs/both`)).toEqual(new Set(['widget']));
    server.on({ path: '/catalogs/x/api/v1/metas', respond: { status: 404 } });
    server.on({ path: '/catalogs/x/api/v1/all', respond: { body: blob('widget') + blob('other') } });
    expect(await namesAt(`${server.origin}/catalogs/x`)).toEqual(new Set(['widget', 'other']));
  });

  it('ends a response without end at its limit', async () => {
    server.on({
      path: '/catalogs/x/api/v1/all',
      respond: { body: Buffer.from(blob('widget')), endless: true },
    });
    const limits = { ...defaultArchiveLimits, maxUnpackedSize: 100_000 };
    const place = { kind: 'served', url: `${server.origin}/catalogs/x` } as const;
    expect(await failureOf(openPlace(place, { ...session, limits }))).toMatchObject({
      code: 'LIMIT',
      hint: 'raise it with limits.maxUnpackedSize',
    });
  });

  it('asks nobody over plain HTTP unless that is allowed, and takes no credentials from a URL', async () => {
    expect(await failureOf(rendered('http://catalogs.example/catalogs/x'))).toMatchObject({ code: 'UNSAFE' });
    const error = await failureOf(rendered('https://me:s3cret@catalogs.example/catalogs/x'));
    expect(error.message).toContain('URL must not contain credentials');
    expect(`${error.message}${error.hint ?? ''}`).not.toContain('s3cret');
  });

  it('refuses a catalog where a bundle is wanted, before it asks for anything', async () => {
    const only = { bundles: true, catalogs: false };
    const failure = await failureOf(openSource(`${server.origin}/catalogs/x`, session, only));
    expect(failure).toMatchObject({ code: 'UNSUPPORTED' });
    expect(server.requests).toEqual([]);
  });
});
