import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { hashSync } from 'bcryptjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { useSandbox } from '../support/command-line.js';
import { createAuthority } from '../support/certificates.js';
import { type FaultRegistry, basic, startFaultRegistry } from '../support/fault-registry.js';
import { serveImage, smallImage } from '../support/images.js';

const sandbox = useSandbox();
let source: FaultRegistry;
let target: Registry;
let destination: string;

beforeAll(async () => {
  source = await startFaultRegistry();
  serveImage(source, 'acme/tool', 'v1', smallImage({ text: 'tool' }));
  target = await startRegistry({ directory: path.join(sandbox.work, 'registry') });
  destination = `docker://${new URL(target.url).host}/flags`;
  await sandbox.write({
    'set.yaml': `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  additionalImages: [{name: ${source.host}/acme/tool:v1}]
`,
  });
});
afterAll(async () => {
  await source.close();
  await target.close();
});

const ocMirror = (...flags: string[]) =>
  sandbox.run(['mirror', '--v2', '-c', 'set.yaml', '--workspace', 'file://w', ...flags, destination]);

describe('mirror with flags of oc-mirror', () => {
  it('verifies TLS except where disabled', async () => {
    const both = ['--src-tls-verify=false', '--dest-tls-verify=false'];
    const [host, other] = [new URL(target.url).host, source.host];
    for (const flag of both) {
      const { code, stderr } = await ocMirror(flag);
      expect(code).toBe(1);
      expect(stderr).toContain(
        `${flag === both[0] ? `${host}/flags/acme/tool` : `${other}/acme/tool:v1`}: speaks plain HTTP, not HTTPS`,
      );
    }
    expect(await ocMirror(...both)).toMatchObject({ code: 0 });
    const status = ['mirror', 'status', '--workspace', 'file://w', '--dest-tls-verify=false', destination];
    expect(await sandbox.run(status)).toMatchObject({ code: 0 });
  });

  it('accepts all flags of oc-mirror, and lists those without effect in one line', async () => {
    const flags = `--parallel-images 8 --parallel-layers 4 --retry-times 2 --retry-delay 1s --image-timeout 5m0s
      -p 55000 --cache-dir cache --log-level trace --secure-policy=false --remove-signatures=true
      --registries.d nowhere --rootless-storage-path nowhere --dry-run
      --src-tls-verify=false --keep-manifest-list --dest-compress`;
    const { code, stderr } = await ocMirror(...flags.split(/\s+/));
    expect(code).toBe(0);
    expect(stderr.split('\n').filter((line) => line.includes('no effect'))).toEqual([
      'warn: no effect: --port, --rootless-storage-path, --dest-compress, --keep-manifest-list, --registries.d',
    ]);
    expect((await ocMirror(...flags.split(/\s+/), '--quiet')).stderr).toBe('');
  });

  it.each([
    '--parallel-images 0',
    '--parallel-images 11',
    '--parallel-layers many',
    '--retry-times -1',
    '--retry-delay soon',
    '--image-timeout 0s',
    '--unheard-of 1',
    '--filter-by-os linux/amd64',
    '--src-creds :secret',
    '--src-creds me:secret --src-no-creds',
    '--dest-username me',
  ])('refuses %s', async (flags) => {
    const { code, stderr } = await ocMirror(
      '--src-tls-verify=false',
      '--dest-tls-verify=false',
      ...flags.split(' '),
    );
    expect(code).toBe(1);
    expect(stderr).toContain(flags.split(' ')[0]?.replace(/(creds|username)$/, ''));
    expect(stderr).not.toContain('secret');
  });

  const insecure = ['--src-tls-verify=false', '--dest-tls-verify=false'];

  it('retries --retry-times times, including 0', async () => {
    for (const times of [0, 2]) {
      const path = '/v2/acme/tool/manifests/v1';
      const from = source.requests.length;
      source.on({ path, times: times + 1, respond: { status: 503 } });
      const { code, stderr } = await ocMirror(
        ...insecure,
        '--retry-times',
        `${times}`,
        '--retry-delay',
        '10ms',
      );
      expect(code).toBe(1);
      expect(stderr).toContain('503');
      expect(source.requests.slice(from).filter((request) => request.path === path)).toHaveLength(times + 1);
    }
  });

  it('stops an image to disk whose layers exceed --image-timeout', async () => {
    const tool = await (await fetch(`http://${source.host}/v2/acme/tool/manifests/v1`)).json();
    const { layers } = tool as { layers: { digest: string }[] };
    const hang = {
      path: `/v2/acme/tool/blobs/${layers[0]?.digest}`,
      times: 1,
      respond: { hang: true as const },
    };
    source.on(hang);
    const args = ['mirror', '-c', 'set.yaml', 'file://slow', '--src-tls-verify=false'];
    const late = await sandbox.run([...args, '--image-timeout', '300ms']);
    expect(late).toMatchObject({ code: 1 });
    expect(late.stderr).toContain('acme/tool:v1: not finished in 0.3 s');
    expect(late.stderr).toContain('raise --image-timeout');
    expect(await sandbox.run([...args, '--image-timeout', '5m'])).toMatchObject({ code: 0 });
  });

  it('stops an image that exceeds --image-timeout', async () => {
    source.on({
      path: '/v2/acme/tool/manifests/v1',
      times: 1,
      respond: { hang: true },
    });
    const { code, stderr } = await ocMirror(...insecure, '--image-timeout', '300ms');
    expect(code).toBe(1);
    expect(stderr).toContain('acme/tool:v1: not finished in 0.3 s');
    expect(stderr).toContain('--image-timeout');
  });

  it('authenticates to each side with its flags', async () => {
    const from = await startFaultRegistry();
    from.requireBasic('me', 'source secret');
    serveImage(from, 'acme/tool', 'v1', smallImage({ text: 'tool' }));
    await sandbox.write({
      passwords: `you:${hashSync('target secret', 4)}\n`,
      'auth.json': JSON.stringify({
        auths: { [from.host]: { auth: Buffer.from('me:source secret').toString('base64') } },
      }),
    });
    const htpasswd = path.join(sandbox.work, 'passwords');
    const to = await startRegistry({ directory: path.join(sandbox.work, 'guarded'), htpasswd });
    const host = new URL(to.url).host;
    const run = (tag: string, ...flags: string[]) => {
      const pair = `${from.host}/acme/tool:v1=${host}/acme/tool:${tag}`;
      return sandbox.run(['mirror', pair, ...insecure, '--retry-times=0', ...flags]);
    };
    try {
      const dest = '--dest-creds=you:target secret';
      const ways = [
        ['--src-creds=me:source secret'],
        ['--src-username=me', '--src-password=source secret'],
        ['--src-authfile=auth.json'],
        ['--authfile=auth.json'],
      ];
      for (const [i, flags] of ways.entries())
        expect(await run(`v${i}`, ...flags, dest)).toMatchObject({ code: 0 });
      const sent = new Set(from.authorizations());
      expect(sent).toEqual(new Set([basic('me', 'source secret')]));
      const refusals = [
        await run('a', '--src-no-creds', '--authfile=auth.json', dest),
        await run('b', '--src-creds=me:other secret', dest),
        await run('c', '--src-authfile=auth.json'),
        await run('d', '--src-registry-token=of-nobody', dest),
      ];
      for (const { code, stderr } of refusals) {
        expect(code).toBe(1);
        expect(stderr).toMatch(/authentication required|credentials refused/);
        expect(stderr).not.toContain('secret');
      }
      expect(from.authorizations()).toContain('Bearer of-nobody');
    } finally {
      await from.close();
      await to.close();
    }
  });

  it('mirrors from HTTP to HTTPS and back with the flags of its hints', async () => {
    const authority = createAuthority('authority of the target');
    await sandbox.write({ 'certs/ca.crt': authority.cert });
    const tls = authority.issue({ names: ['127.0.0.1'] });
    const secure = {
      source: await startFaultRegistry({ tls }),
      target: await startRegistry({ directory: path.join(sandbox.work, 'secure'), tls }),
    };
    serveImage(secure.source, 'acme/tool', 'v1', smallImage({ text: 'tool' }));
    try {
      for (const [from, to, side] of [
        [source.host, new URL(secure.target.url).host, 'src'],
        [secure.source.host, new URL(target.url).host, 'dest'],
      ] as const) {
        const other = side === 'src' ? 'dest' : 'src';
        const pair = `${from}/acme/tool:v1=${to}/acme/${side}:v1`;
        const hinted = await sandbox.run(['mirror', pair, `--${other}-cert-dir=certs`]);
        expect(hinted.stderr).toContain(`use --${side}-tls-verify=false`);
        const untrusted = await sandbox.run(['mirror', pair, `--${side}-tls-verify=false`]);
        expect(untrusted.stderr).toContain(`accept any certificate with --${other}-tls-verify=false`);
        const flags = [`--${side}-tls-verify=false`, `--${other}-cert-dir=certs`];
        expect(await sandbox.run(['mirror', pair, ...flags])).toMatchObject({ code: 0 });
      }
    } finally {
      await secure.source.close();
      await secure.target.close();
    }
  });

  it('stores downloads in --cache-dir, and refuses conflicting cache flags', async () => {
    const flags = [...insecure, '--cache-dir', 'kept'];
    expect(await ocMirror(...flags)).toMatchObject({ code: 0 });
    expect(await readdir(path.join(sandbox.work, 'kept', '.opmate'))).toContain('blobs');
    const args = ['mirror', '-c', 'set.yaml', '--workspace', 'file://w', ...flags, destination];
    const both = await sandbox.run(args, { env: { OC_MIRROR_CACHE: 'other' } });
    expect(both).toMatchObject({ code: 1 });
    expect(both.stderr).toContain('--cache-dir and OC_MIRROR_CACHE cannot be used together');
  });

  it.each([
    ['--since 2025-01-01', '--base'],
    ['--dry-run-manifest-lists', 'opmate mirror plan'],
    ['--secure-policy', '--verify strict and --policy'],
    ['--v1', 'v2alpha1'],
  ])('refuses %s with what to do instead', async (flags, hint) => {
    const [flag = ''] = flags.split(' ');
    const { code, stderr } = await ocMirror(...flags.split(' '));
    expect(code).toBe(1);
    expect(stderr).toMatch(new RegExp(`^error: ${flag}: not supported\nhint: .*${hint}`));
    expect(stderr).not.toContain('secret');
  });
});
