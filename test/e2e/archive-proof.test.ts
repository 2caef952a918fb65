import { generateKeyPairSync, verify } from 'node:crypto';
import { mkdir, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeLock } from '../../src/mirror/lock/encode-lock.js';
import { parseLock } from '../../src/mirror/lock/parse-lock.js';
import { writeArchiveSet } from '../../src/oci/archive-set/archive-set-writer.js';
import { readArchiveIndex } from '../../src/oci/archive-set/archive-index.js';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { ArchiveContent } from '../support/archive-content.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { lockedImage } from '../support/locks.js';
import { type OperatorSet, serveOperatorSet } from '../support/operator-set.js';
import { streamOf } from '../support/images.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
const key = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const other = generateKeyPairSync('ed25519');
const pem = (from: typeof key | typeof other) => ({
  private: from.privateKey.export({ type: 'pkcs8', format: 'pem' }),
  public: from.publicKey.export({ type: 'spki', format: 'pem' }),
});
let source: FaultRegistry;
let operators: OperatorSet;
let target: Registry;
let registry: string;
let id: string;

const configOf = (catalog: string): string => `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: ${catalog}
    targetCatalogSourceTemplate: cs.yaml
    packages:
    - name: widget
      minVersion: 1.1.0
`;
const template = (display: string): string =>
  `apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nspec:\n  displayName: ${display}\n`;

const mirror = (...args: string[]) => sandbox.run(['mirror', '--use-http', ...args]);

beforeAll(async () => {
  source = await startFaultRegistry();
  operators = await serveOperatorSet(source);
  target = await startRegistry({ directory: at('target') });
  registry = `docker://${new URL(target.url).host}/olm`;
  const [own, foreign] = [pem(key), pem(other)];
  await sandbox.write({
    'set.yaml': configOf(operators.catalog),
    'cs.yaml': template('here'),
    'own.key': own.private as string,
    'own.pub': own.public as string,
    'foreign.pub': foreign.public as string,
  });
  const written = await mirror('-c', 'set.yaml', '--sign-by', 'own.key', 'file://carry');
  expect(written).toMatchObject({ code: 0 });
  ({ id } = await readArchiveIndex(at('carry')));
  expect(written.stderr).toContain(`archive ${id}: `);
});
afterAll(async () => {
  await source.close();
  await target.close();
});

/** Writes the archive again with one image more, in its lock too, as a forger would. */
async function forge(directory: string, repository: string): Promise<void> {
  const index = await readArchiveIndex(at('carry'));
  const lock = parseLock(index.lock, 'lock');
  const content = new ArchiveContent();
  const root = content.image(repository, 'v1', 'evil');
  const blobs = content.blobs
    .map(({ descriptor }) => descriptor)
    .filter(({ digest }) => digest !== root.digest);
  const contents = { root, manifests: [{ descriptor: root, manifests: [], blobs }] };
  const image = { ...lockedImage('evil', contents), repository };
  const forged = { ...lock, images: [...lock.images, image] };
  const bytes = await readFile(at('carry', 'mirror_000001.tar'));
  await writeArchiveSet(
    directory,
    [
      ...index.images.map(({ descriptor, ...name }) => ({ ...name, root: descriptor })),
      { repository, tag: image.tag, root },
    ],
    [
      ...[...index.blobs].map(([digest, { size, offset }]) => ({
        descriptor: { mediaType: 'application/octet-stream', digest, size },
        open: () => streamOf(bytes.subarray(offset, offset + size)),
      })),
      ...content.blobs,
    ],
    { partBytes: 1e9, lock: encodeLock(forged) },
  );
}

describe('a tampered archive', () => {
  it('is refused by its ID before anything is read or written', async () => {
    await forge(at('forged'), 'acme/evil');
    expect(await sandbox.run(['archive', 'verify', 'forged'])).toMatchObject({ code: 0 });
    for (const args of [
      ['archive', 'verify', 'forged'],
      ['mirror', '--use-http', '--from', 'forged', registry],
      ['oci', 'serve', 'forged', '--port', '0'],
    ]) {
      const refused = await sandbox.run([...args, '--id', id]);
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr).toMatch(
        /forged\/mirror_archive\.json: expected archive sha256:\w+, got sha256:/,
      );
    }
    expect(await (await fetch(`${target.url}/v2/_catalog`)).json()).toEqual({ repositories: [] });
    const sound = await sandbox.run(['archive', 'verify', 'file://carry', '--id', id]);
    expect(sound).toMatchObject({ code: 0, stdout: expect.stringContaining(id) as string });
  });

  it('is refused by its signature', async () => {
    for (const [archive, publicKey, problem] of [
      ['forged', 'own.pub', 'not signed: mirror_archive.json.sig not found'],
      ['carry', 'foreign.pub', 'signature does not match the key and the archive'],
    ] as const) {
      const refused = await sandbox.run(['archive', 'verify', archive, '--verify-key', publicKey]);
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr).toContain(problem);
    }
    const signed = await sandbox.run(['archive', 'verify', 'carry', '--verify-key', 'own.pub']);
    expect(signed).toMatchObject({ code: 0 });
    // In the form of other tools.
    const signature = await readFile(at('carry', 'mirror_archive.json.sig'), 'utf8');
    const bytes = await readFile(at('carry', 'mirror_archive.json'));
    expect(verify('sha256', bytes, key.publicKey, Buffer.from(signature, 'base64'))).toBe(true);
  });

  it('is refused if it has contents outside the configuration, with their names', async () => {
    const refused = await mirror('--from', 'forged', '-c', 'set.yaml', registry);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('acme/evil:v1: the configuration does not request this image');
    expect(await (await fetch(`${target.url}/v2/_catalog`)).json()).toEqual({ repositories: [] });
  });

  it('is copied if the configuration covers its contents, with local templates', async () => {
    const allowed = await mirror('--from', 'carry', '--id', id, '-c', 'set.yaml', registry);
    expect(allowed).toMatchObject({ code: 0 });
    const text = await readFile(at('working-dir', 'cluster-resources', 'cs-index-v1.yaml'), 'utf8');
    expect(text).toContain('displayName: here');
    expect((await readdir(at('working-dir', 'cluster-resources'))).sort()).toEqual(
      ['cc-index-v1.yaml', 'cs-index-v1.yaml', 'idms-oc-mirror.yaml', 'itms-oc-mirror.yaml'].sort(),
    );
  });
});

describe('opmate mirror --from', () => {
  it('reads templates from the lock and opens no paths from the archive', async () => {
    await writeFile(at('cs.yaml'), template('changed'));
    const result = await mirror('--from', 'file://carry', '--workspace', 'file://unlocked', registry);
    expect(result).toMatchObject({ code: 0 });
    const text = await readFile(at('unlocked/working-dir/cluster-resources/cs-index-v1.yaml'), 'utf8');
    expect(text).toContain('displayName: here');
    await writeFile(at('cs.yaml'), template('here'));
  });

  it('writes to the working directory, not through a link', async () => {
    await mkdir(at('outside', 'cluster-resources'), { recursive: true });
    await writeFile(at('outside', 'cluster-resources', 'kept.yaml'), 'kept');
    await symlink(at('outside'), at('carry-link'));
    await mkdir(at('linked'), { recursive: true });
    await symlink(at('outside'), at('linked', 'working-dir'));
    const refused = await mirror('--from', 'carry', '--workspace', 'file://linked', registry);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toMatch(/linked\/working-dir": is a link\nhint: remove the link/);
    expect(await readFile(at('outside', 'cluster-resources', 'kept.yaml'), 'utf8')).toBe('kept');
    await rm(at('linked'), { recursive: true });
  });
});
