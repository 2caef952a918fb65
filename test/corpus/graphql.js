/* global fetch */
// GraphQL over a catalog: what catalogd answered. Root fields have more arguments here, which introspection shows only
// to those who ask for deprecated ones.
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';

const opmate = fileURLToPath(new URL('../../bin/opmate.cjs', import.meta.url));

const typeQuery = `query Type($name: String!) {
  __type(name: $name) { fields { name type { kind name ofType { kind name ofType { kind name } } } } }
}`;

export async function compareGraphql(corpus, report) {
  const folder = path.join(corpus, 'golden/graphql');
  for (const file of readdirSync(folder).sort()) {
    const golden = JSON.parse(readFileSync(path.join(folder, file), 'utf8'));
    await withServer(path.join(corpus, golden.catalog), (post) => compareCatalog(post, golden, file, report));
  }
}

async function withServer(catalog, work) {
  const args = [
    'serve',
    catalog,
    '-p',
    '0',
    '--host',
    '127.0.0.1',
    '--http',
    '127.0.0.1:0',
    '--name',
    'corpus',
  ];
  const child = spawn(process.execPath, [opmate, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  try {
    const url = await new Promise((resolve, reject) => {
      let said = '';
      child.stderr.on('data', (chunk) => (said += chunk));
      child.stdout.on('data', (chunk) => resolve(String(chunk).trim()));
      child.on('close', () => reject(new Error(`opmate ${args.join(' ')} ended: ${said}`)));
    });
    await work(async (body) => {
      const response = await fetch(`${url}/api/v1/graphql`, { method: 'POST', body });
      return { status: response.status, text: await response.text() };
    });
  } finally {
    child.kill();
  }
}

async function compareCatalog(post, { bodies, queries, types }, file, report) {
  for (const { body, status } of bodies) {
    const size = /^query of (\d+) bytes$/.exec(body)?.[1];
    const sent = size === undefined ? body : JSON.stringify({ query: ' '.repeat(Number(size) - 12) });
    const got = await post(sent);
    report.check(`graphql/${file} body ${body.slice(0, 40)}`, differenceOfStatus(got.status, status));
  }
  for (const [i, { query, status, answer }] of queries.entries()) {
    const got = await post(JSON.stringify({ query }));
    report.check(
      `graphql/${file} query ${i + 1}`,
      differenceOfStatus(got.status, status) ?? differenceOfAnswer(got.text, answer),
    );
  }
  for (const [name, fields] of Object.entries(types)) {
    const got = await post(JSON.stringify({ query: typeQuery, variables: { name } }));
    report.check(`graphql/${file} type ${name}`, differenceOfType(got.text, fields));
  }
}

function differenceOfStatus(got, wanted) {
  return got === wanted ? undefined : `got status ${got}, wanted ${wanted}`;
}

function differenceOfAnswer(text, wanted) {
  if (typeof wanted === 'string') return text.trim() === wanted.trim() ? undefined : `got ${text}`;
  const got = JSON.parse(text);
  if ((got.errors ?? []).length > 0 !== (wanted.errors ?? []).length > 0) {
    return `got errors ${JSON.stringify(got.errors)}, wanted ${JSON.stringify(wanted.errors)}`;
  }
  if (isDeepStrictEqual(ordered(got.data), ordered(wanted.data))) return undefined;
  return `got ${JSON.stringify(got.data).slice(0, 300)}, wanted ${JSON.stringify(wanted.data).slice(0, 300)}`;
}

/** Upstream's order of schemas in the summary, and of arguments, is random. */
function ordered(value) {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      (key === 'schemas' || key === 'args') && Array.isArray(item)
        ? item.map(ordered).sort((a, b) => (a.name < b.name ? -1 : 1))
        : ordered(item),
    ]),
  );
}

function differenceOfType(text, wanted) {
  const { data, errors } = JSON.parse(text);
  if (data?.__type === undefined || data.__type === null) return `got ${JSON.stringify(errors ?? data)}`;
  const known = wanted.map((field) => {
    const colon = field.indexOf(':');
    return { name: field.slice(0, colon), type: JSON.parse(field.slice(colon + 1)) };
  });
  const got = data.__type.fields.map(({ name, type }) => ({ name, type: cut(type) }));
  const byName = (fields) => [...fields].sort((a, b) => (a.name < b.name ? -1 : 1));
  if (isDeepStrictEqual(byName(got), byName(known))) return undefined;
  return `got ${JSON.stringify(byName(got))}, wanted ${JSON.stringify(byName(known))}`;
}

/** The recorded types go two levels deep. */
function cut({ kind, name, ofType }) {
  return {
    kind,
    name,
    ofType: ofType === null ? null : { kind: ofType.kind, name: ofType.name, ofType: null },
  };
}
