// The gRPC registry API: what grpcurl got from the real servers. The client here learns the messages by reflection, as
// grpcurl does.
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { connect } from './grpc-client.js';
import { differenceOf } from './report.js';

const opmate = fileURLToPath(new URL('../../bin/opmate.cjs', import.meta.url));

/** Starts `opmate ARGS -p 0` and calls `work` with a client of it. */
export async function withRegistryServer(args, directory, work) {
  const child = spawn(process.execPath, [opmate, ...args, '-p', '0', '--host', '127.0.0.1'], {
    cwd: directory,
    env: { PATH: process.env.PATH, HOME: '/nonexistent' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    const port = await new Promise((resolve, reject) => {
      let said = '';
      child.stderr.on('data', (chunk) => {
        said += chunk;
        const found = /serving registry.* port=(\d+)/.exec(said);
        if (found !== null) resolve(found[1]);
      });
      child.on('close', () => reject(new Error(`opmate ${args.join(' ')} ended: ${said}`)));
    });
    const client = await connect(`127.0.0.1:${port}`);
    try {
      return await work(client);
    } finally {
      client.close();
    }
  } finally {
    child.kill();
  }
}

export async function compareGrpc(corpus, report) {
  await withRegistryServer(['serve', path.join(corpus, 'catalogs/dev')], corpus, async (client) => {
    await compareAnswers(client, path.join(corpus, 'golden/grpc/fbc'), 'grpc/fbc', report);
  });
  const index = path.join(corpus, 'golden/sqlite-combined/index.db');
  await withRegistryServer(['registry', 'serve', '-d', index], corpus, async (client) => {
    await compareAnswers(client, path.join(corpus, 'golden/grpc/sqlite'), 'grpc/sqlite', report);
  });
}

/** Compares a server with all answers of a folder. */
export async function compareAnswers(client, folder, name, report) {
  for (const file of readdirSync(folder).sort()) {
    const text = readFileSync(path.join(folder, file), 'utf8');
    const check = (difference) => report.check(`${name}/${file}`, difference);
    if (file === 'services.txt') {
      check(differenceOf(`${(await client.listServices()).sort().join('\n')}\n`, text));
    } else if (file === 'ListBundles.keys.json') {
      check(differenceOfRows(keysOf(await client.call('ListBundles', {})), JSON.parse(text)));
    } else {
      check(await compareCall(client, text, folder));
    }
  }
}

async function compareCall(client, text, folder) {
  const [, method, request] = /^# (\w+) (.*)$/m.exec(text);
  const body = text.replace(/^#.*\n/gm, '');
  const asked = JSON.parse(request);
  const wantedError = /^ERROR:\n {2}Code: (\w+)\n {2}Message: ([^]*)\n$/.exec(body);
  try {
    const got = await client.call(method, asked);
    if (wantedError !== null) return `got an answer, wanted ${wantedError[2]}`;
    const wanted = JSON.parse(`[${body.replace(/\n\}\n\{/g, '\n},{')}]`);
    // Of several that replace the one asked for, upstream takes any.
    if (method === 'GetBundleThatReplaces') {
      return differenceOfReplacement(folder, asked, got[0], wanted[0]);
    }
    return differenceOfRows(got, wanted);
  } catch (error) {
    if (typeof error.code !== 'number') throw error;
    const said = `${client.codeName(error.code)}: ${error.details}`;
    if (wantedError === null) return `got ${said}`;
    return differenceOf(said.toLowerCase(), `${wantedError[1]}: ${wantedError[2]}`.toLowerCase());
  }
}

function differenceOfReplacement(folder, { csvName, pkgName, channelName }, got, wanted) {
  const file = path.join(folder, `GetChannelEntriesThatReplace-${csvName}.txt`);
  const body = readFileSync(file, 'utf8').replace(/^#.*\n/gm, '');
  const candidates = JSON.parse(`[${body.replace(/\n\}\n\{/g, '\n},{')}]`)
    .filter(({ packageName, channelName: channel }) => packageName === pkgName && channel === channelName)
    .map(({ bundleName }) => bundleName);
  if (!candidates.includes(got.csvName)) return `got ${got.csvName}, which does not replace ${csvName}`;
  return got.csvName === wanted.csvName ? differenceOfRows([got], [wanted]) : undefined;
}

/** What is free where upstream's order is random. */
function differenceOfRows(got, wanted) {
  const sorted = (rows) => rows.map((row) => JSON.stringify(inKeyOrder(row))).sort();
  const [a, b] = [sorted(got), sorted(wanted)];
  if (isDeepStrictEqual(a, b)) return undefined;
  const index = a.findIndex((row, i) => row !== b[i]);
  const at = index < 0 ? a.length : index;
  return `${a.length} of ${b.length} rows; ${differenceOf(a[at] ?? '', b[at] ?? '')}`;
}

function inKeyOrder(value) {
  if (Array.isArray(value)) return value.map(inKeyOrder);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, inKeyOrder(value[key])]),
  );
}

function keysOf(bundles) {
  return bundles.map((bundle) => [
    bundle.packageName,
    bundle.channelName,
    bundle.csvName,
    bundle.replaces,
    bundle.version,
    bundle.skipRange,
    [...bundle.skips].sort(),
    bundle.csvJson.length,
    bundle.object.length,
    bundle.properties.length,
    bundle.dependencies.length,
    bundle.bundlePath,
  ]);
}
