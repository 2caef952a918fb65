import { readdir } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defaultArchiveLimits } from '../../../../src/archive/limits.js';
import type { HttpPlace } from '../../../../src/source/place.js';
import { createAuthority } from '../../../support/certificates.js';
import { type Workbench, failureOf, openWorkbench } from '../../../support/connect.js';
import { type FaultRegistry, basic, sha256, startFaultRegistry } from '../../../support/fault-registry.js';
import { rawTar } from '../../../support/tar.js';
import { contentOptions, placedAt, type Opening, openWith } from '../content/content-world.js';

const body = gzipSync(rawTar([{ name: 'a.yaml', content: 'one' }]));

let bench: Workbench;
let server: FaultRegistry;
let options: Opening;

beforeEach(async () => {
  bench = await openWorkbench();
  server = await startFaultRegistry();
  server.on({ path: '/a.tgz', respond: { body } });
  options = await contentOptions(bench);
});

afterEach(async () => {
  await server.close();
  await bench.close();
});

async function read(source: Partial<HttpPlace>, more: Partial<Opening> = {}): Promise<string[]> {
  const whole = { kind: 'http', url: `${server.origin}/a.tgz`, ...source } as const;
  const opened = await openWith([placedAt('src', whole)], { ...options, ...more });
  try {
    return await readdir(opened.directory);
  } finally {
    await opened.close();
  }
}

describe('source/drivers/http-archive of content', () => {
  it('checks the checksum, and tells both', async () => {
    expect(await read({ checksum: sha256(body) })).toEqual(['a.yaml']);
    const checksum = sha256('other');
    expect(await failureOf(read({ checksum }))).toMatchObject({
      code: 'DIGEST',
      message: `${server.origin}/a.tgz: expected ${checksum}, got ${sha256(body)}`,
    });
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it('sends a password to where it is for, and nowhere else', async () => {
    server.requireBasic('me', 's3cret');
    const credentials = { type: 'basic', username: 'me', password: 's3cret' } as const;
    expect(await failureOf(read({}))).toMatchObject({ code: 'AUTH' });
    expect(await read({ credentials })).toEqual(['a.yaml']);
    const wrong = await failureOf(read({ credentials: { ...credentials, password: 'wr0ng' } }));
    expect(wrong).toMatchObject({ code: 'AUTH' });
    expect(`${wrong.message}${wrong.hint ?? ''}`).not.toContain('wr0ng');
    const other = await startFaultRegistry();
    other.on({ path: '/a.tgz', respond: { body } });
    server.on({ path: '/moved', respond: { status: 302, headers: { location: `${other.origin}/a.tgz` } } });
    expect(await read({ url: `${server.origin}/moved`, credentials })).toEqual(['a.yaml']);
    expect(other.authorizations()).toEqual([]);
    await other.close();
  });

  it('takes what the auth file has for the host', async () => {
    server.requireBasic('me', 's3cret');
    const auth = basic('me', 's3cret').slice('Basic '.length);
    const authFile = await bench.file('auth.json', { auths: { [server.host]: { auth } } });
    const connection = bench.connect({ useHttp: true, maxAttempts: 1, authFile });
    expect(await read({}, { connect: () => connection })).toEqual(['a.yaml']);
  });

  it('verifies certificates unless told otherwise', async () => {
    const authority = createAuthority();
    const secure = await startFaultRegistry({ tls: authority.issue() });
    secure.on({ path: '/a.tgz', respond: { body } });
    const connectAnew: Opening['connectAnew'] = (changes) =>
      Promise.resolve(bench.connect({ maxAttempts: 1, ...changes }));
    const more = { connect: () => bench.connect({ maxAttempts: 1 }), connectAnew };
    const url = `${secure.origin}/a.tgz`;
    expect((await failureOf(read({ url }, more))).message).toMatch(/certificate/i);
    expect(await read({ url, insecureSkipTlsVerify: true }, more)).toEqual(['a.yaml']);
    const credentials = { type: 'basic', username: 'me', password: 's3cret' } as const;
    expect(await read({ url, insecureSkipTlsVerify: true, credentials }, more)).toEqual(['a.yaml']);
    await secure.close();
  });

  it('refuses plain HTTP to elsewhere, what is no archive, and a stream without end', async () => {
    expect(await failureOf(read({ url: 'http://a.example/x' }))).toMatchObject({ code: 'UNSAFE' });
    expect(await failureOf(read({ url: 'ftp://a.example/x' }))).toMatchObject({ code: 'INVALID' });
    expect(await failureOf(read({ url: 'https://me:s3cret@a.example/x' }))).toMatchObject({
      code: 'INVALID',
    });
    const ssh = { type: 'ssh', privateKey: 'x' } as const;
    expect(await failureOf(read({ credentials: ssh }))).toMatchObject({ code: 'INVALID' });
    server.on({ path: '/page', respond: { body: '<html>not found</html>' } });
    expect(await failureOf(read({ url: `${server.origin}/page` }))).toMatchObject({ code: 'SYNTAX' });
    const limits = { ...defaultArchiveLimits, maxUnpackedSize: 100_000 };
    server.on({ path: '/cut', respond: { body, truncateAfter: 50 } });
    expect(await failureOf(read({ url: `${server.origin}/cut` }))).toMatchObject({ code: 'NETWORK' });
    server.on({ path: '/endless', respond: { body: Buffer.alloc(1000), endless: true } });
    expect(await failureOf(read({ url: `${server.origin}/endless` }, { limits }))).toMatchObject({
      code: 'LIMIT',
    });
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });
});
