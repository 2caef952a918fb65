import { access, readFile } from 'node:fs/promises';
import path from 'node:path';
import { loadAll } from 'js-yaml';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startRegistry } from '../../src/serve/registry/registry.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { type OperatorSet, serveOperatorSet } from '../support/operator-set.js';

interface CronJob {
  spec: { jobTemplate: { spec: { template: { spec: { containers: [{ args: string[] }] } } } } };
}

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
const isThere = (...names: string[]): Promise<boolean> =>
  access(at(...names)).then(
    () => true,
    () => false,
  );
let source: FaultRegistry;
let operators: OperatorSet;

beforeAll(async () => {
  source = await startFaultRegistry();
  operators = await serveOperatorSet(source);
  const index = source.requests.length;
  expect(index).toBe(0);
  const { body, headers } = await manifestOf('acme/index', 'v1');
  source.serveManifest('other/index', 'v1', body, headers);
  for (const { digest } of blobsOf(body)) {
    const blob = await fetch(`${source.origin}/v2/acme/index/blobs/${digest}`);
    source.serveBlob('other/index', Buffer.from(await blob.arrayBuffer()));
  }
  const configOf = (...names: string[]): string =>
    `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n${names
      .map((name) => `  - catalog: ${source.host}/${name}\n    packages:\n    - name: widget\n`)
      .join('')}`;
  await sandbox.write({
    'one.yaml': configOf('acme/index:v1'),
    'two.yaml': configOf('acme/index:v1', 'other/index:v1'),
  });
});
afterAll(() => source.close());
beforeEach(() => void (source.requests.length = 0));

async function manifestOf(repository: string, tag: string): Promise<{ body: Buffer; headers: string }> {
  const answer = await fetch(`${source.origin}/v2/${repository}/manifests/${tag}`);
  return {
    body: Buffer.from(await answer.arrayBuffer()),
    headers: answer.headers.get('content-type') as string,
  };
}
function blobsOf(manifest: Buffer): { digest: string }[] {
  const { config, layers } = JSON.parse(manifest.toString()) as {
    config: { digest: string };
    layers: { digest: string }[];
  };
  return [config, ...layers];
}
const mirror = (...args: string[]) => sandbox.run(['mirror', ...args, '--use-http']);

describe('opmate mirror with wrong flags', () => {
  const registry = 'docker://registry.test/olm';
  it.each([
    [['-c', 'one.yaml', '--continue-on-error', registry], '--continue-on-error: not with --config'],
    [['-c', 'one.yaml', '--skip-missing', registry], '--skip-missing: not with --config'],
    [
      ['-c', 'one.yaml', '--max-per-registry', '0', '--dry-run', registry],
      '--max-per-registry "0": expected',
    ],
    [['--locked', registry], '--locked: needs --config or --from'],
    [
      ['-c', 'one.yaml', '--prune', registry],
      `--prune: took "${registry}" as its age\nhint: use --prune=30d, or --prune after the destination`,
    ],
    [['--on-error', 'skip-image', 'a.test/b:c=d.test/e:f'], '--on-error: needs --config'],
    [['-c', 'one.yaml', '--locked', registry], 'working-dir/opmate.lock.json: lock not found'],
    [['-c', 'one.yaml', '--lock', '.', registry], '--lock ".": is a directory'],
    [['-c', 'one.yaml', '--lock', 'one.yaml/lock', registry], 'one.yaml": not a directory'],
    [
      ['-c', 'one.yaml', '--workspace', 'file://one.yaml', registry],
      'one.yaml/working-dir": not a directory',
    ],
    [['-c', 'one.yaml', 'file://one.yaml'], 'one.yaml: not a directory\nhint: specify another destination'],
    [
      ['-c', 'absent.yaml', registry],
      'absent.yaml: no such file or directory\nhint: create one with opmate mirror capture',
    ],
    [
      ['plan', '-c', 'absent.yaml', '--lock', 'new.lock', registry],
      'absent.yaml: no such file or directory\nhint: create one with',
    ],
    [['-c', 'one.yaml', '--base', 'nowhere', 'file://disk'], 'nowhere: no such file or directory'],
    [
      ['plan', '-c', 'one.yaml', '-o', 'yaml', registry],
      'invalid --output value "yaml", expected (text|json)',
    ],
    [
      ['plan', '-c', 'one.yaml', '--from', 'file://disk', registry],
      '--from: a plan is made from the sources',
    ],
    [['plan', '-c', 'one.yaml', '--locked', registry], '--locked: a plan is made from the sources'],
    [['plan', '-c', 'one.yaml', '--lock', '.', registry], '--lock ".": is a directory'],
  ])('is told before anything is asked for: %j', async (args, message) => {
    const result = await mirror(...args);
    expect(result.stderr).toContain(message);
    const isOwn = args[0] === '--locked' || (args[0] === 'plan' && !args.includes('--lock'));
    expect(result.code).toBe(isOwn ? 2 : 1);
    expect(source.requests).toEqual([]);
    expect(await isThere('working-dir')).toBe(false);
  });

  it('refuses objects with the same name before copying, from any source', async () => {
    const target = await startRegistry({ directory: at('target') });
    const place = `docker://${new URL(target.url).host}/olm`;
    try {
      for (const args of [
        ['-c', 'two.yaml', place],
        ['-c', 'two.yaml', 'file://disk'],
        ['plan', '-c', 'two.yaml', place],
      ]) {
        const result = await mirror(...args);
        expect(result).toMatchObject({ code: 1, stdout: '' });
        expect(result.stderr).toMatch(/same object name cs-index-v1 for |cs-index-v1: same object name for /);
        expect(result.stderr).toContain('hint: set another targetCatalog or targetTag for one of them');
      }
      expect(await isThere('working-dir')).toBe(false);
      expect(await isThere('disk')).toBe(false);
      expect(await (await fetch(`${target.url}/v2/_catalog`)).json()).toEqual({ repositories: [] });
    } finally {
      await target.close();
    }
  });
});

describe('opmate mirror schedule', () => {
  const schedule = (...args: string[]) =>
    sandbox.run([
      ...['mirror', 'schedule', '-c', 'one.yaml', '--image', 'registry.test/opmate:v1'],
      ...args,
      'docker://registry.test/olm',
    ]);
  const isRefused = async (args: string[], message: string): Promise<void> => {
    const result = await schedule(...args);
    expect(result).toMatchObject({ code: 2, stdout: '' });
    expect(result.stderr).toContain(message);
  };

  it.each([
    [['-n', 'Bad_NS'], 'namespace "Bad_NS": not a DNS-1123 label'],
    [['--secret', 'Bad_Name'], 'secret "Bad_Name": not a DNS-1123 subdomain'],
    [['--storage', '10Gx'], 'storage "10Gx": not a positive quantity\nhint: use a size such as 10Gi'],
    [['--storage=-1Gi'], 'storage "-1Gi": not a positive quantity'],
    [['--storage', '0'], 'storage "0": not a positive quantity'],
  ])('refuses what a cluster refuses: %j', isRefused);

  it.each([
    [['--run-flag=--prone=30d'], '--run-flag: unknown option "--prone"\nhint: did you mean --prune?'],
    [['--run-flag=prune=30d'], '--run-flag: "prune=30d" is not a flag\nhint: use --run-flag=--NAME=VALUE'],
    [['--run-flag=--prune=30d'], '--run-flag: --prune needs --yes'],
    [['--run-flag=--yes'], '--run-flag: --yes: needs --prune'],
    [['--use-http', '--run-flag=--skip-tls-verify'], '--run-flag: invalid flag combination'],
    [['--ca-file', 'ca.pem'], 'hint: mount it in the pods, and use --run-flag=--ca-file=PATH'],
    [['--prune=30d'], '--prune: not a flag of the schedule\nhint: use --run-flag=--prune=VALUE'],
    [['--authfile', 'auth.json'], 'hint: create a Secret of it, and name that with --secret'],
  ])('refuses flags of which no run would come: %j', isRefused);

  it('passes flags to the runs, those for registries too', async () => {
    for (const name of ['--use-http', '--skip-tls-verify']) {
      const result = await schedule(name, '--run-flag=--yes', '--run-flag=--prune');
      expect(result).toMatchObject({ code: 0 });
      const [, , job] = loadAll(result.stdout) as [unknown, unknown, CronJob];
      const { args } = job.spec.jobTemplate.spec.template.spec.containers[0];
      const place = args.indexOf('docker://registry.test/olm');
      expect(args.slice(place + 1)).toEqual(['--log-format', 'json', name, '--yes', '--prune']);
    }
  });

  it('names every local path of the configuration, which no pod has', async () => {
    await sandbox.write({
      'local.yaml': `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: oci://index
    targetCatalog: olm/index
  - catalog: registry.test/olm/other:v1
    targetCatalogSourceTemplate: source.yaml
  additionalImages:
  - name: registry.test/tools/cli:v1
  - name: oci:image
    targetRepo: tools/image
  helm:
    local:
    - path: charts/demo.tgz
`,
    });
    const result = await schedule('-c', 'local.yaml');
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr.match(/local\.yaml:\d+:\d+: .*(?= is a local path, which no pod has)/g)).toEqual([
      'local.yaml:5:5: catalog "oci://index"',
      'local.yaml:7:5: template "source.yaml"',
      'local.yaml:11:5: image "oci:image"',
      'local.yaml:15:7: chart "charts/demo.tgz"',
    ]);
  });
});

describe('opmate mirror --dry-run with a lock', () => {
  it('lists the images of an archive or lock, and copies nothing', async () => {
    const target = await startRegistry({ directory: at('untouched') });
    const place = `docker://${new URL(target.url).host}/olm`;
    try {
      const planned = await mirror('-c', 'one.yaml', '--dry-run', '--workspace', 'file://planned', place);
      expect(planned).toMatchObject({ code: 0 });
      expect(await mirror('-c', 'one.yaml', 'file://carry')).toMatchObject({ code: 0 });
      source.requests.length = 0;
      const ways = [
        ['--from', 'file://carry'],
        ['-c', 'one.yaml', '--locked', '--lock', 'carry/working-dir/opmate.lock.json'],
      ];
      for (const [i, way] of ways.entries()) {
        expect(await mirror(...way, '--dry-run', '--workspace', `file://way${i}`, place)).toMatchObject({
          code: 0,
        });
        for (const name of ['dry-run/mapping.txt', 'cluster-resources/cs-index-v1.yaml']) {
          const text = await readFile(at(`way${i}`, 'working-dir', name), 'utf8');
          expect(text).toBe(await readFile(at('planned', 'working-dir', name), 'utf8'));
        }
      }
      expect(source.requests).toEqual([]);
      expect(await (await fetch(`${target.url}/v2/_catalog`)).json()).toEqual({ repositories: [] });
      expect(operators.catalog).toContain(source.host);
    } finally {
      await target.close();
    }
  });
});

describe('opmate mirror to an archive with a base', () => {
  it('does not replace its base, and is not confused with it', async () => {
    expect(await mirror('-c', 'one.yaml', 'file://base')).toMatchObject({ code: 0 });
    const before = await readFile(at('base', 'mirror_archive.json'), 'utf8');
    for (const base of ['base', './base/../base/', 'base/mirror_archive.json']) {
      const result = await mirror('-c', 'one.yaml', '--base', base, 'file://base');
      expect(result).toMatchObject({ code: 1, stdout: '' });
      expect(result.stderr).toContain(`--base "${base}": the new archive would replace it`);
    }
    expect(await readFile(at('base', 'mirror_archive.json'), 'utf8')).toBe(before);
    expect(await mirror('-c', 'one.yaml', '--base', 'base', 'file://later')).toMatchObject({ code: 0 });
    const swapped = await mirror(
      '--from',
      'file://base',
      '--from',
      'file://later',
      'docker://registry.test/olm',
    );
    expect(swapped).toMatchObject({ code: 1, stdout: '' });
    expect(swapped.stderr).toMatch(
      /base: base of \S+later, which must precede it\nhint: specify the later archive first/,
    );
  });
});
