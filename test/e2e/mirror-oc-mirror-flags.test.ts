import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Registry, startRegistry } from '../../src/serve/registry.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
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

describe('mirror, as scripts call oc-mirror', () => {
  it('verifies registries, but for those that it is told not to', async () => {
    const both = ['--src-tls-verify=false', '--dest-tls-verify=false'];
    const [host, other] = [new URL(target.url).host, source.host];
    for (const flag of both) {
      const { code, stderr } = await ocMirror(flag);
      expect(code).toBe(1);
      expect(stderr).toContain(`${flag === both[0] ? host : other}: speaks plain HTTP, not HTTPS`);
    }
    expect(await ocMirror(...both)).toMatchObject({ code: 0 });
    const status = ['mirror', 'status', '--workspace', 'file://w', '--dest-tls-verify=false', destination];
    expect(await sandbox.run(status)).toMatchObject({ code: 0 });
  });

  it('takes what it does not need', async () => {
    const flags = `--parallel-images 8 --parallel-layers 4 --retry-times 2 --retry-delay 1s --image-timeout 5m
      -p 55000 --cache-dir /nowhere --log-level trace --secure-policy=false --remove-signatures=true
      --ignore-release-signature --quiet --registries.d /nowhere --rootless-storage-path /nowhere --dry-run
      --src-tls-verify=false`;
    expect(await ocMirror(...flags.split(/\s+/))).toMatchObject({ code: 0 });
  });

  it.each([
    ['--since 2025-01-01', '--base'],
    ['--dry-run-manifest-lists', 'opmate mirror plan'],
    ['--secure-policy', 'cosign'],
    ['--policy policy.json', 'cosign'],
    ['--dest-creds me:secret', '--authfile'],
    ['--src-authfile auth.json', '--authfile'],
    ['--v1', 'v2alpha1'],
  ])('refuses %s with what to do instead', async (flags, hint) => {
    const [flag = ''] = flags.split(' ');
    const { code, stderr } = await ocMirror(...flags.split(' '));
    expect(code).toBe(1);
    expect(stderr).toMatch(new RegExp(`^${flag}: not supported\nhint: .*${hint}`));
    expect(stderr).not.toContain('secret');
  });
});
