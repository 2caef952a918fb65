import { request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import type { QueryLimits } from '../../src/serve/graphql/catalog-query.js';
import { type Served, lastModified, serve } from './served-catalogs.js';

const catalog = {
  'catalog.json': [
    { schema: 'olm.package', name: 'foo', defaultChannel: 'stable' },
    { schema: 'olm.package', name: 'bar', defaultChannel: 'beta' },
    {
      schema: 'olm.channel',
      name: 'stable',
      package: 'foo',
      entries: [{ name: 'foo.v1' }, { name: 'foo.v2', skips: ['foo.v1'] }],
    },
    {
      schema: 'olm.bundle',
      name: 'foo.v1',
      package: 'foo',
      image: 'q/foo:1',
      size: 5,
      properties: [{ type: 'a', value: { b: '<1>', a: 2 } }],
    },
    { schema: 'olm.bundle', name: 'foo.v2', package: 'foo', image: 'q/foo:2', size: 9007199254740993n },
    { schema: 'olm.bundle', name: 'bar.v1', package: 'bar', image: 'q/bar:1', size: '7' },
  ]
    .map((blob) =>
      JSON.stringify(blob, (_, value: unknown) => (typeof value === 'bigint' ? `BIG${value}` : value)),
    )
    .join('\n')
    .replace(/"BIG(\d+)"/g, '$1'),
};

const route = '/catalogs/cat/api/v1/graphql';

interface Result {
  status: number;
  text: string;
  data?: unknown;
  errors?: { message: string; locations: unknown[]; path?: unknown[] }[];
}

async function post(served: Served, body: unknown): Promise<Result> {
  const sent = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const { port } = served;
    const out = request(
      { host: '127.0.0.1', port, path: route, method: 'POST', agent: false },
      (response) => {
        buffer(response).then((bytes) => {
          const text = bytes.toString();
          const isJson = response.headers['content-type'] === 'application/json';
          resolve({
            status: response.statusCode ?? 0,
            text,
            ...(isJson ? (JSON.parse(text) as object) : {}),
          });
        }, reject);
      },
    );
    out.on('error', reject);
    out.end(sent);
  });
}

async function query(text: string, limits?: Partial<QueryLimits>): Promise<Result> {
  return post(await serve({ cat: catalog }, { queryLimits: limits }), { query: text });
}

function parameters(values: Record<string, string>): string {
  return `${route}?${new URLSearchParams(values).toString()}`;
}

describe('GraphQL over a catalog', () => {
  it('selects fields, in stored order, with limit and offset', async () => {
    const { data, errors } = await query('{ olmbundles(limit: 1, offset: 1) { name image size } }');
    expect(data).toEqual({ olmbundles: [{ name: 'foo.v2', image: 'q/foo:2', size: null }] });
    expect(errors).toBeUndefined();
  });

  it('coerces values to the type of the first blob, and returns objects as JSON text', async () => {
    const { data } = await query('{ olmbundles { size sizeJson properties { type value } } }');
    expect(data).toEqual({
      olmbundles: [
        { size: 5, sizeJson: '5', properties: [{ type: 'a', value: '{"a":2,"b":"\\u003c1\\u003e"}' }] },
        { size: null, sizeJson: '9007199254740993', properties: null },
        { size: 7, sizeJson: '"7"', properties: null },
      ],
    });
  });

  it('fails for lists of scalars like catalogd, and returns them as JSON text', async () => {
    const { data, errors } = await query('{ olmchannels { entries { name skips skipsJson } } }');
    expect(data).toEqual({
      olmchannels: [
        {
          entries: [
            { name: 'foo.v1', skips: null, skipsJson: null },
            { name: 'foo.v2', skips: null, skipsJson: '["foo.v1"]' },
          ],
        },
      ],
    });
    expect(errors).toMatchObject([
      {
        message:
          'expected iterable, but did not find one for field OlmChannelEntries.skips; select skipsJson',
        path: ['olmchannels', 0, 'entries', 1, 'skips'],
      },
    ]);
  });

  it('filters root fields by name and package', async () => {
    const { data } = await query(
      '{ olmbundles(package: "bar") { name } olmpackages(package: "foo") { name } x: olmbundles(name: "foo.v2", package: "bar") { name } }',
    );
    expect(data).toEqual({ olmbundles: [{ name: 'bar.v1' }], olmpackages: [{ name: 'foo' }], x: [] });
  });

  it('accepts variables and operationName', async () => {
    const served = await serve({ cat: catalog });
    const text = 'query A($n: Int) { olmpackages(limit: $n) { name } } query B { __typename }';
    const all = { query: text, variables: { n: 1 }, operationName: 'A' };
    expect((await post(served, all)).data).toEqual({ olmpackages: [{ name: 'foo' }] });
    expect((await post(served, { ...all, operationName: 'B' })).data).toEqual({ __typename: 'Query' });
    expect(await post(served, { ...all, operationName: 'C' })).toMatchObject({
      status: 200,
      data: null,
      errors: [{}],
    });
  });

  it('supports GET with an ETag, and conditional requests without executing the query', async () => {
    const served = await serve({ cat: catalog });
    const path = parameters({
      query: 'query($n: String) { olmbundles(name: $n) { image } }',
      variables: '{"n":"foo.v1"}',
    });
    const { status, headers, text } = await served.get(path);
    expect({ status, text }).toEqual({
      status: 200,
      text: '{"data":{"olmbundles":[{"image":"q/foo:1"}]}}\n',
    });
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'last-modified': lastModified });
    const etag = headers.etag as string;
    expect((await served.get(path, { 'If-None-Match': etag })).status).toBe(304);
    const other = parameters({ query: '{ summary { totalSchemas } }' });
    expect((await served.get(other, { 'If-None-Match': etag })).status).toBe(200);
    await served.put('cat', { 'catalog.json': '{"schema":"olm.package","name":"foo"}' });
    expect((await served.get(path, { 'If-None-Match': etag })).status).toBe(200);
    expect((await served.get(`${path}&other=1`)).status).toBe(400);
    expect((await served.get(path, {}, 'PUT')).status).toBe(405);
  });

  it('refuses bodies without a query, and unknown catalogs', async () => {
    const served = await serve({ cat: catalog });
    const large = JSON.stringify({ query: ' '.repeat(1024 * 1024) });
    for (const body of ['', '{', '[]', '{"query":1}', large, Buffer.alloc(3 * 1024 * 1024, 'a')]) {
      expect(await post(served, body)).toMatchObject({ status: 400, text: 'Invalid request body\n' });
    }
    for (const body of ['null', '{}', '{"query":""}', '{"query":null}']) {
      expect(await post(served, body)).toMatchObject({ status: 400, text: 'Query cannot be empty\n' });
    }
    const tooLong = { query: `{ a }${' '.repeat(100_000)}` };
    expect(await post(served, tooLong)).toMatchObject({ status: 400, text: 'Query too large\n' });
    expect((await served.get(`/catalogs/none/api/v1/graphql?query=%7Ba%7D`)).status).toBe(404);
  });

  it('fails for a catalog with colliding names, with the reason', async () => {
    const served = await serve({ cat: { 'catalog.json': '{"schema":"a.b"}{"schema":"a-b"}' } });
    const { status, text } = await post(served, { query: '{ __typename }' });
    expect(status).toBe(500);
    expect(text).toContain('schemas "a-b" and "a.b" have the same type AB');
  });

  it('introspects the schema of catalogd, with additions marked deprecated', async () => {
    const text = (deprecated: string) =>
      `{ __type(name: "Query") { fields { name args${deprecated} { name } } } }`;
    const argumentsOf = (result: Result) =>
      (result.data as { __type: { fields: { args: { name: string }[] }[] } }).__type.fields[0]?.args.map(
        ({ name }) => name,
      );
    expect(argumentsOf(await query(text('')))).toEqual(['limit', 'offset']);
    expect(argumentsOf(await query(text('(includeDeprecated: true)')))).toEqual([
      'limit',
      'offset',
      'name',
      'package',
    ]);
  });
});

describe('hostile GraphQL queries', () => {
  const fields = (count: number, field: (i: number) => string) =>
    Array.from({ length: count }, (_, i) => field(i)).join(' ');

  it.each<[string, string, string]>([
    ['depth', `{${'a{'.repeat(10)}b${'}'.repeat(10)}}`, 'query exceeds maximum depth of 10'],
    ['nesting that would overflow the stack', '{a'.repeat(7_000), 'query exceeds maximum depth of 10'],
    [
      'nested values',
      `{ olmbundles(limit: ${'['.repeat(7_000)}) { name } }`,
      'query exceeds maximum depth of 10',
    ],
    ['aliases', `{ ${fields(51, (i) => `a${i}: __typename`)} }`, 'query exceeds maximum alias count of 50'],
    ['fields', `{ ${fields(501, () => '__typename')} }`, 'query exceeds maximum field count of 500'],
    ['tokens', `{ ${fields(20_000, () => 'a')} }`, 'query exceeds maximum token count of 15000'],
    [
      'fields that no operation uses',
      `{ __typename } fragment F on Query { ${fields(1_001, () => '__typename')} }`,
      'query exceeds maximum selection count of 1000',
    ],
    [
      'operations',
      fields(201, (i) => `query q${i} { __typename }`),
      'query exceeds maximum definition count of 200',
    ],
    [
      'fragments in a circle',
      '{ ...F } fragment F on Query { ...F }',
      'Cannot spread fragment "F" within itself.',
    ],
    [
      'fragments that multiply',
      `{ __schema { types { ...F0 } } } ${fields(5, (i) => `fragment F${i} on __Type { ${`...F${i + 1} `.repeat(12)}}`)} fragment F5 on __Type { name }`,
      'query exceeds maximum introspection size of 200000',
    ],
    [
      'introspection that multiplies',
      '{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }',
      'Maximum introspection depth exceeded',
    ],
  ])('bounds %s', async (_, text, message) => {
    const { status, data, errors } = await query(text);
    expect({ status, data, message: errors?.[0]?.message }).toEqual({ status: 200, data: null, message });
  });

  it.each([
    ['known directives', `{ __typename ${'@skip(if: false) '.repeat(2_000)} }`],
    ['unknown directives', `{ __typename ${'@a '.repeat(7_000)} }`],
    ['arguments', `{ olmbundles(${fields(4_500, (i) => `a${i}: 1`)}) { name } }`],
    ['variables', `query (${fields(3_500, (i) => `$a${i}: Int`)}) { __typename }`],
    ['unknown fields of long names', `{ ${fields(490, (i) => `${'olmbundle'.repeat(10)}${i}`)} }`],
  ])('reports some of the faults of a flood of %s', async (_, text) => {
    const { status, data, errors = [] } = await query(text);
    expect({ status, data }).toEqual({ status: 200, data: null });
    expect(errors.length).toBeGreaterThan(0);
    expect(errors.length).toBeLessThanOrEqual(101);
  });

  it('refuses batches, and ignores unused variables of any depth', async () => {
    const served = await serve({ cat: catalog });
    const batch = Array.from({ length: 10_000 }, () => ({ query: '{ __typename }' }));
    expect(await post(served, batch)).toMatchObject({ status: 400, text: 'Invalid request body\n' });
    const nested = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const body = `{"query":"{ __typename }","variables":{"a":${nested}}}`;
    expect(await post(served, body)).toMatchObject({ status: 200, data: { __typename: 'Query' } });
  });

  it('limits the size of a result, including repeated names', async () => {
    const limits = { maxResultBytes: 1_000 };
    const message = 'result exceeds maximum size of 1000 bytes: select fewer fields, or a lower limit';
    for (const alias of ['a'.repeat(500), '']) {
      const name = alias === '' ? fields(30, (i) => `a${i}: name`) : `${alias}: __typename`;
      const { data, errors } = await query(`{ olmbundles { ${name} } }`, limits);
      expect({ data, message: errors?.map((error) => error.message) }).toEqual({
        data: null,
        message: [message],
      });
    }
    expect((await query('{ olmpackages { name } }', limits)).errors).toBeUndefined();
  });

  it('limits the time of a query, without an ETag for such a result', async () => {
    const served = await serve({ cat: catalog }, { queryLimits: { maxMs: 0 } });
    const { text, headers } = await served.get(parameters({ query: '{ olmbundles { name } }' }));
    expect(text).toContain('query exceeds maximum time of 0 ms');
    expect(headers.etag).toBeUndefined();
  });

  it('limits the errors of a result', async () => {
    const entries = Array.from({ length: 3_000 }, (_, i) => ({ name: `v${i}`, skips: ['a'] }));
    const blob = JSON.stringify({ schema: 'olm.channel', name: 'c', package: 'p', entries });
    const served = await serve({ cat: { 'catalog.json': blob } });
    const { errors } = await post(served, { query: '{ olmchannels { entries { skips } } }' });
    expect(errors).toHaveLength(1_001);
    expect(errors?.at(-1)?.message).toBe('2000 more errors');
  });

  it('yields to other requests', async () => {
    const entries = Array.from({ length: 3_000 }, (_, i) => ({ name: `v${i}` }));
    const blob = (i: number) =>
      JSON.stringify({ schema: 'olm.channel', name: `c${i}`, package: 'p', entries });
    const served = await serve({
      cat: { 'catalog.json': Array.from({ length: 20 }, (_, i) => blob(i)).join('\n') },
    });
    const done: string[] = [];
    const slow = post(served, {
      query: '{ olmchannels { entries { name } } }',
    });
    void slow.then(() => done.push('query'));
    await served.get('/healthz');
    await served.get('/healthz');
    done.push('health');
    expect((await slow).status).toBe(200);
    expect(done).toEqual(['health', 'query']);
  });
});
