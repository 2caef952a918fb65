import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { Gpg } from '../support/gpg.js';
import { SigstoreWorld, pemPair } from '../support/sigstore.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
const own = pemPair();
const other = pemPair();
let registry: DockerRegistry;
let image: string;
let digest: string;

const catalog = [
  { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
  { schema: 'olm.channel', package: 'widget', name: 'stable', entries: [{ name: 'widget.v1.0.0' }] },
  {
    ...{ schema: 'olm.bundle', package: 'widget', name: 'widget.v1.0.0', image: 'quay.io/demo/widget:v1' },
    properties: [{ type: 'olm.package', value: { packageName: 'widget', version: '1.0.0' } }],
  },
];

const opmate = (...args: string[]) => sandbox.run([...args, '--use-http']);
const verify = (...args: string[]) => opmate('verify', ...args);
const build = (...args: string[]) => opmate('catalog', 'build', 'catalog', '-i', 'scratch', ...args);

/** A manifest or blob of the registry. */
async function fetchFrom(reference: string, kind = 'manifests'): Promise<Buffer> {
  const accept = 'application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json';
  const url = `http://${registry.host}/v2/demo/catalog/${kind}/${reference}`;
  return Buffer.from(await (await fetch(url, { headers: { accept } })).arrayBuffer());
}

async function put(reference: string, bytes: Buffer | string, repository = 'demo/catalog'): Promise<void> {
  const response = await fetch(`http://${registry.host}/v2/${repository}/manifests/${reference}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/vnd.oci.image.manifest.v1+json' },
    body: bytes,
  });
  expect(response.status).toBe(201);
}

async function putBlob(
  bytes: Buffer,
  repository = 'demo/catalog',
): Promise<{ digest: string; size: number }> {
  const blob = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  const started = await fetch(`http://${registry.host}/v2/${repository}/blobs/uploads/`, { method: 'POST' });
  const location = new URL(started.headers.get('location') as string, `http://${registry.host}`);
  location.searchParams.set('digest', blob);
  expect((await fetch(location, { method: 'PUT', body: bytes })).status).toBe(201);
  return { digest: blob, size: bytes.length };
}

const signatureTag = (of: string): string => `${of.replace(':', '-')}.sig`;

beforeAll(async () => {
  await sandbox.write({
    'catalog/catalog.json': catalog.map((one) => JSON.stringify(one)).join('\n'),
    'own.key': own.privateKey,
    'own.pub': own.publicKey,
    'other.key': other.privateKey,
    'other.pub': other.publicKey,
  });
  if (!hasDockerRegistry) return;
  registry = await startDockerRegistry();
  image = `${registry.host}/demo/catalog:v1`;
  const built = await build('-t', image, '--platforms', 'linux/amd64,linux/arm64', '--sign-by', 'own.key');
  expect(built).toMatchObject({ code: 0 });
  digest = built.stdout.trim().split('@')[1] as string;
});
afterAll(() => registry?.close());

describe.skipIf(!hasDockerRegistry)('--sign-by and verify with docker-registry', () => {
  it('verifies signatures of catalog build by key', async () => {
    const result = await verify('--key', 'own.pub', image, '-o', 'json');
    expect(result.code).toBe(0);
    expect(JSON.parse(result.stdout)).toEqual({
      images: [{ image, digest, status: 'verified', reason: 'signed with the key' }],
    });
  });

  it('signs the index and each of its images, verifiable with openssl', async () => {
    const index = JSON.parse((await fetchFrom('v1')).toString()) as { manifests: { digest: string }[] };
    const all = [digest, ...index.manifests.map((one) => one.digest)];
    expect(all).toHaveLength(3);
    for (const one of all) {
      const { layers } = JSON.parse((await fetchFrom(signatureTag(one))).toString()) as {
        layers: { digest: string; annotations: Record<string, string> }[];
      };
      const [layer] = layers;
      const payload = await fetchFrom(layer?.digest ?? '', 'blobs');
      await writeFile(at('payload'), payload);
      await writeFile(
        at('signature'),
        Buffer.from(layer?.annotations['dev.cosignproject.cosign/signature'] ?? '', 'base64'),
      );
      const checked = spawnSync('openssl', [
        'dgst',
        '-sha256',
        '-verify',
        at('own.pub'),
        '-signature',
        at('signature'),
        at('payload'),
      ]);
      expect(checked.stdout.toString()).toBe('Verified OK\n');
      expect(JSON.parse(payload.toString())).toMatchObject({
        critical: { identity: { 'docker-reference': image }, image: { 'docker-manifest-digest': one } },
      });
    }
  });

  it('keeps existing signatures, and signs once', async () => {
    const tag = `${registry.host}/demo/catalog:v1`;
    const layers = async (): Promise<number> =>
      (JSON.parse((await fetchFrom(signatureTag(digest))).toString()) as { layers: unknown[] }).layers.length;
    const again = ['-t', tag, '--platforms', 'linux/amd64,linux/arm64', '--sign-by'];
    const before = await layers();
    expect(await build(...again, 'own.key')).toMatchObject({ code: 0 });
    expect(await layers()).toBe(before);
    expect(await build(...again, 'other.key')).toMatchObject({ code: 0 });
    expect(await layers()).toBe(before + 1);
    for (const key of ['own.pub', 'other.pub']) expect((await verify('--key', key, image)).code).toBe(0);
  });

  it('applies policy.json by scope', async () => {
    const { host } = registry;
    const policy = {
      default: [{ type: 'reject' }],
      transports: {
        docker: {
          [`${host}/demo`]: [{ type: 'sigstoreSigned', keyPath: at('own.pub') }],
          [`${host}/free`]: [{ type: 'insecureAcceptAnything' }],
          [`${host}/strange`]: [{ type: 'sigstoreSigned', keyPath: at('own.pub') }],
        },
      },
    };
    await sandbox.write({ 'policy.json': JSON.stringify(policy) });
    for (const name of ['free', 'strange', 'unknown']) {
      execFileSync('skopeo', [
        'copy',
        '--all',
        '--insecure-policy',
        '--src-tls-verify=false',
        '--dest-tls-verify=false',
        `docker://${image}`,
        `docker://${host}/${name}/catalog:v1`,
      ]);
    }
    const images = ['demo', 'free', 'strange', 'unknown'].map((name) => `${host}/${name}/catalog:v1`);
    const result = await verify('--policy', 'policy.json', ...images, '-o', 'json');
    expect(result.code).toBe(3);
    const { images: verdicts } = JSON.parse(result.stdout) as {
      images: { status: string; reason: string }[];
    };
    expect(verdicts.map(({ status }) => status)).toEqual(['verified', 'accepted', 'unsigned', 'refused']);
    expect(verdicts[2]?.reason).toContain(`no signature (scope ${host}/strange)`);
    expect(verdicts[3]?.reason).toContain('the policy rejects the image (scope default)');
  });

  it('refuses a signature that was moved to another image, and another name', async () => {
    const built = await build('-t', `${registry.host}/demo/catalog:v2`, '--platforms', 'linux/s390x');
    const moved = built.stdout.trim().split('@')[1] as string;
    await put(signatureTag(moved), await fetchFrom(signatureTag(digest)));
    const result = await verify('--key', 'own.pub', `${registry.host}/demo/catalog:v2`);
    expect(result.code).toBe(3);
    expect(result.stdout).toMatch(
      new RegExp(`refused: signature 1: signature of another image: expected ${moved}`),
    );
    const policy = { default: [{ type: 'sigstoreSigned', keyPath: at('own.pub') }] };
    await sandbox.write({ 'any.json': JSON.stringify(policy) });
    execFileSync('skopeo', [
      'copy',
      '--all',
      '--insecure-policy',
      '--src-tls-verify=false',
      '--dest-tls-verify=false',
      `docker://${image}`,
      `docker://${registry.host}/demo/catalog:other`,
    ]);
    const renamed = await verify('--policy', 'any.json', `${registry.host}/demo/catalog:other`);
    expect(renamed.code).toBe(3);
    expect(renamed.stdout).toContain(`signed as ${image}`);
  });

  it.each([
    ['truncated manifest', (text: string) => text.slice(0, 60)],
    [
      'another signature',
      (text: string) =>
        text.replace(/"dev.cosignproject.cosign\/signature":"./g, '"dev.cosignproject.cosign/signature":"A'),
    ],
    ['another payload', (text: string) => text.replace(/simplesigning\.v1\+json/g, 'other+json')],
  ])('does not accept a signature with %s', async (_, change) => {
    const built = await build(
      '-t',
      `${registry.host}/demo/tampered:v1`,
      '--platforms',
      'linux/amd64',
      '--sign-by',
      'own.key',
    );
    const signed = built.stdout.trim().split('@')[1] as string;
    expect((await verify('--key', 'own.pub', `${registry.host}/demo/tampered:v1`)).code).toBe(0);
    const url = `http://${registry.host}/v2/demo/tampered/manifests/${signatureTag(signed)}`;
    const accept = 'application/vnd.oci.image.manifest.v1+json';
    const changed = change(await (await fetch(url, { headers: { accept } })).text());
    const type = { 'content-type': accept };
    const stored = await fetch(url, { method: 'PUT', headers: type, body: changed });
    if (stored.status !== 201) return expect(stored.status).toBe(400); // the registry refuses it itself
    expect((await verify('--key', 'own.pub', `${registry.host}/demo/tampered:v1`)).code).toBe(3);
  });

  it('verifies only the given certificate identity with a trusted root', async () => {
    const world = new SigstoreWorld();
    try {
      const issuer = 'https://accounts.example.com';
      const { key, pem } = world.issue('leaf', 'email:ci@example.com', issuer);
      const built = await build(
        '-t',
        `${registry.host}/demo/keyless:v1`,
        '--platforms',
        'linux/amd64',
        '--sign-by',
        'own.key',
      );
      const signed = built.stdout.trim().split('@')[1] as string;
      const critical = {
        identity: { 'docker-reference': `${registry.host}/demo/keyless` },
        image: { 'docker-manifest-digest': signed },
        type: 'cosign container image signature',
      };
      const payload = Buffer.from(JSON.stringify({ critical, optional: null }));
      const { sign } = await import('node:crypto');
      const signature = sign('sha256', payload, key).toString('base64');
      const layer = {
        mediaType: 'application/vnd.dev.cosign.simplesigning.v1+json',
        ...(await putBlob(payload, 'demo/keyless')),
        annotations: {
          'dev.cosignproject.cosign/signature': signature,
          'dev.sigstore.cosign/certificate': pem,
          'dev.sigstore.cosign/chain': world.intermediate.pem,
          'dev.sigstore.cosign/bundle': world.logEntry(payload, signature, pem),
        },
      };
      const config = {
        mediaType: 'application/vnd.oci.image.config.v1+json',
        ...(await putBlob(Buffer.from('{}'), 'demo/keyless')),
      };
      await put(
        signatureTag(signed),
        JSON.stringify({
          schemaVersion: 2,
          mediaType: 'application/vnd.oci.image.manifest.v1+json',
          config,
          layers: [layer],
        }),
        'demo/keyless',
      );
      await sandbox.write({ 'root.json': world.trustedRoot() });
      const by = (name: string, from: string) =>
        verify(
          '--certificate-identity',
          name,
          '--certificate-oidc-issuer',
          from,
          '--trusted-root',
          'root.json',
          `${registry.host}/demo/keyless:v1`,
        );
      expect(await by('ci@example.com', issuer)).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('verified: signed by ci@example.com') as string,
      });
      expect((await by('other@example.com', issuer)).code).toBe(3);
      expect((await by('ci@example.com', 'https://evil.example')).code).toBe(3);
      const policy = {
        default: [
          {
            type: 'sigstoreSigned',
            fulcio: {
              caData: Buffer.from(world.root.pem).toString('base64'),
              oidcIssuer: issuer,
              subjectEmail: 'ci@example.com',
            },
            rekorPublicKeyData: Buffer.from(world.logKey()).toString('base64'),
            signedIdentity: { type: 'matchRepository' },
          },
        ],
      };
      await sandbox.write({ 'fulcio.json': JSON.stringify(policy) });
      expect(await verify('--policy', 'fulcio.json', `${registry.host}/demo/keyless:v1`)).toMatchObject({
        code: 0,
      });
    } finally {
      world.close();
    }
  });

  it('verifies OpenPGP signatures of a lookaside store like skopeo', async () => {
    const gpg = new Gpg();
    try {
      gpg.makeKey('signer');
      await writeFile(at('signer.gpg'), gpg.publicKey('signer'));
      const source = `${registry.host}/demo/catalog:v1`;
      const target = `${registry.host}/simple/catalog:v1`;
      await sandbox.write({
        'registries.d/a.yaml': `docker:\n  ${registry.host}/simple:\n    lookaside: file://${at('store')}\n    sigstore: file://${at('store')}\n    lookaside-staging: file://${at('store')}\n`,
        'signed-by.json': JSON.stringify({
          default: [{ type: 'reject' }],
          transports: {
            docker: {
              [`${registry.host}/simple`]: [
                { type: 'signedBy', keyType: 'GPGKeys', keyPath: at('signer.gpg') },
              ],
            },
          },
        }),
      });
      const skopeo = (...args: string[]) =>
        spawnSync('skopeo', ['--registries.d', at('registries.d'), ...args], {
          env: { PATH: process.env['PATH'], GNUPGHOME: gpg.home, HOME: gpg.home },
        });
      const tls = ['--src-tls-verify=false', '--dest-tls-verify=false'];
      const copied = skopeo(
        '--insecure-policy',
        'copy',
        '--override-arch',
        'amd64',
        ...tls,
        '--sign-by',
        'signer@example.com',
        `docker://${source}`,
        `docker://${target}`,
      );
      expect(copied.stderr.toString()).toBe('');
      const both = async (): Promise<[number | null, number | null]> => {
        const judged = skopeo(
          '--policy',
          at('signed-by.json'),
          'copy',
          ...tls,
          `docker://${target}`,
          `dir:${at('judged')}`,
        );
        const checked = await verify('--policy', 'signed-by.json', '--registries.d', 'registries.d', target);
        return [judged.status === 0 ? 0 : 3, checked.code];
      };
      expect(await both()).toEqual([0, 0]);
      const [directory = ''] = await readdir(at('store/simple'));
      const file = at('store/simple', directory, 'signature-1');
      const good = await readFile(file);
      const bad = Buffer.from(good);
      bad[bad.length - 10] = (bad[bad.length - 10] as number) ^ 1;
      for (const bytes of [
        bad,
        good.subarray(0, 100),
        gpg.sign('signer', '{"critical": {}}'),
        Buffer.alloc(0),
      ]) {
        await writeFile(file, bytes);
        expect(await both()).toEqual([3, 3]);
      }
      await writeFile(file, good);
      expect(await both()).toEqual([0, 0]);
    } finally {
      gpg.close();
    }
  });
});

describe('--sign-by without a registry', () => {
  it('signs images in layouts and archives', async () => {
    for (const place of ['oci:layout:v1', 'oci-archive:image.tar:v1']) {
      expect(await build('--save', place, '--sign-by', 'own.key')).toMatchObject({ code: 0 });
      expect((await verify('--key', 'own.pub', place)).code).toBe(0);
      expect((await verify('--key', 'other.pub', place)).code).toBe(3);
    }
  });

  it.each([
    [['--sign-by', 'own.pub'], 'own.pub: not a private key in PEM'],
    [['--sign-by', 'none.key'], 'none.key: no such file or directory'],
    [
      ['--sign-by', 'own.key', '--save', 'docker-archive:a.tar'],
      '--sign-by: a docker-archive cannot hold signatures',
    ],
  ])('refuses %j before anything is written', async (args, problem) => {
    const result = await build('--save', 'oci:unsigned:v1', ...args);
    expect(result.code).not.toBe(0);
    expect(result.stderr).toContain(problem);
    expect(await readdir(sandbox.work)).not.toContain('unsigned');
  });

  it.each([
    [[], 'no signature policy'],
    [['--key', 'own.key', '--policy', 'x.json'], 'several signature policies'],
    [['--certificate-identity', 'a@b.c'], 'incomplete certificate identity'],
    [['--key', 'catalog/catalog.json'], 'catalog/catalog.json: not a public key in PEM'],
  ])('verify %j is refused', async (args, problem) => {
    const result = await verify(...args, 'oci:layout:v1');
    expect(result.code).not.toBe(0);
    expect(result.stderr).toContain(problem);
  });
});
