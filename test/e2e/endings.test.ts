import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { useExampleWorld } from './example-world.js';

const sandbox = useSandbox();
const world = useExampleWorld(sandbox);
const bundle = 'registry.example.com/demo/bundle:v1.3.0';
const from = '-f registry.example.com/demo/index:v1 -i scratch';
const pushed = '-t registry.example.com/endings/index:v1';
const archive = 'mirror --from archive docker://registry.example.com';

/** Long commands, each with the command that its ending proposes; some have nothing to propose. */
const endings: readonly (readonly [line: string, next: RegExp | undefined])[] = [
  [
    'catalog build ./catalog -t registry.example.com/endings/catalog:v1 -i scratch',
    /^opmate serve HOST\/endings/,
  ],
  [
    'catalog build ./catalog --save oci:built:v9 -i scratch',
    /^opmate oci copy oci:built:v9 REGISTRY\/NAME:TAG$/,
  ],
  [
    'catalog build ./catalog -t registry.example.com/endings/catalog:v1 -i scratch --use-http',
    /^opmate serve HOST\/\S+ --use-http$/,
  ],
  [
    'bundle build -d ./bundle -t registry.example.com/endings/bundle:v3 --save oci:made:v1',
    /^opmate bundle push oci:made:v1 HOST\/endings\/bundle:v3$/,
  ],
  ['catalog filter ./catalog -p demo --heads-only --to filtered', /^opmate serve filtered$/],
  [
    'catalog publish ./catalog --name demo --to public',
    /^opmate list packages https:\/\/HOST\/catalogs\/demo$/,
  ],
  ['catalog mirror registry.example.com/demo/catalog:v1 registry.example.com/oc', /^kubectl apply -f \S+$/],
  ['catalog mirror registry.example.com/demo/catalog:v1 file://oc', /^opmate catalog mirror file:\/\/oc\//],
  [`catalog add ./catalog ${bundle} --channel stable`, undefined],
  ['catalog remove ./catalog --package demo --channel alpha', undefined],
  ['catalog deprecate ./catalog --package demo --message gone', undefined],
  ['migrate index.db migrated', /^opmate serve migrated$/],
  ['bundle build -d ./bundle --save oci:made:v1', /^opmate bundle push oci:made:v1 REGISTRY\/NAME:TAG$/],
  [
    'bundle build -d ./bundle -t registry.example.com/endings/bundle:v1',
    /^opmate catalog add CATALOG HOST\/\S+@sha256:[0-9a-f]{64}(?: --use-http)?$/,
  ],
  [
    'bundle push ./bundle registry.example.com/endings/bundle:v2',
    /^opmate catalog add CATALOG HOST\/\S+@sha256:[0-9a-f]{64}(?: --use-http)?$/,
  ],
  ['bundle unpack ./bundle --to unpacked', undefined],
  ['bundle render ./bundle --install-namespace demo --to rendered', /^kubectl apply -f rendered$/],
  [`index add -b ${bundle} ${from} ${pushed}`, /^opmate serve HOST/],
  [`index add -b ${bundle} ${from} --save index.tar`, /^opmate oci copy oci-archive:index\.tar /],
  [`index rm --package demo ${from} ${pushed}`, /^opmate serve HOST/],
  [`index delete --package demo ${from} ${pushed}`, /^opmate serve HOST/],
  [`index delete-latest demo ${from} ${pushed}`, /^opmate serve HOST/],
  [`index prune -p demo ${from} ${pushed}`, /^opmate serve HOST/],
  [`index prune-stranded ${from} ${pushed}`, /^opmate serve HOST/],
  [
    `index deprecatetruncate -b registry.example.com/demo/bundle:v1.1.0 ${from} ${pushed}`,
    /^opmate serve HOST/,
  ],
  [`index build index.db -i scratch ${pushed}`, /^opmate serve HOST/],
  ['index export -i index.db --to exported', /^opmate registry init -m exported --to DATABASE$/],
  [`registry add -b ${bundle} -d index.db`, undefined],
  ['registry rm demo index.db', undefined],
  ['registry prune index.db -p demo', undefined],
  ['registry init -m manifests --to new.db', /^opmate registry serve new\.db$/],
  [
    'registry images --from registry.example.com/demo/catalog:v1 --to mirror.example.com/demo',
    /^opmate mirror -f MAPPING && kubectl apply/,
  ],
  [
    'registry build --bundles ./bundle --from scratch --to oci:made:v1',
    /^opmate oci copy oci:made:v1 REGISTRY/,
  ],
  ['mirror -c imageset.yaml docker://registry.example.com/endings', /^kubectl apply -f working-dir\//],
  [
    'mirror -c imageset.yaml file://carry',
    /^opmate mirror --from carry --id sha256:\w+ docker:\/\/REGISTRY$/,
  ],
  [`${archive}/far`, /^kubectl apply -f working-dir\/cluster-resources$/],
  [`mirror ${bundle}=registry.example.com/one/bundle:v1`, /^opmate oci inspect HOST\/one\/bundle:v1$/],
  [
    `mirror ${bundle}=file://one/bundle`,
    /^opmate mirror file:\/\/one\/bundle:v1\.3\.0=REGISTRY\/NAMESPACE\/NAME:TAG$/,
  ],
  [
    'mirror plan -c imageset.yaml file://next',
    /^opmate mirror -c imageset\.yaml --locked --plan sha256:\w+ file:/,
  ],
  [
    'mirror inventory docker://registry.example.com/demo-mirror --to inv.json',
    /^opmate mirror .* --base inv\.json$/,
  ],
  ['mirror capture objects.yaml --to set.yaml', /^opmate mirror plan -c set\.yaml docker:\/\/REGISTRY$/],
  [
    'mirror delete --generate -c delete.yaml docker://registry.example.com/demo-mirror',
    /^opmate mirror delete --delete-yaml-file working-dir\/delete\/delete-images\.yaml docker:\/\/HOST\/demo-mirror$/,
  ],
  [
    'mirror delete --delete-yaml-file delete-images.yaml docker://registry.example.com/demo-mirror --dry-run',
    /^opmate mirror delete --delete-yaml-file delete-images\.yaml docker:\/\/HOST\/demo-mirror$/,
  ],
  [
    'mirror delete --delete-yaml-file delete-images.yaml docker://registry.example.com/demo-mirror',
    /^run garbage collection on HOST to free the space$/,
  ],
  [`oci copy ${bundle} oci:copied:v1`, undefined],
  ['oci gc layout', undefined],
  ['view ./catalog --export page', undefined],
];

/** Commands whose lines before the work are those of opm, or name each catalog. */
const tellsBefore = /^(?:registry build|mirror -c)/;

async function run(line: string): Promise<{ code: number | null; stderr: string; directory: string }> {
  const directory = await world.copy();
  const words = world.localize(line).split(' ');
  const { code, stderr } = await sandbox.run(words, { cwd: directory, env: world.environment() });
  return { code, stderr, directory };
}

describe('the ending', () => {
  it.each(endings)(
    'of opmate %s is short, in human-readable units, with the next step',
    async (line, next) => {
      const { code, stderr } = await run(line);
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
      const host = world.localize('registry.example.com');
      const lines = stderr.trimEnd().replaceAll(host, 'HOST').split('\n');
      expect(lines.length).toBeLessThanOrEqual(tellsBefore.test(line) ? 6 : 5);
      for (const text of lines) {
        if (!tellsBefore.test(line)) expect(text).toMatch(/^info: /);
        // No bytes beyond 1023, and no fields of logs.
        expect(text).not.toMatch(/\d{4,} bytes| \w+=\S+$| MB\b/);
      }
      const shown = /^info: next: (.*)$/.exec(lines.at(-1) ?? '')?.[1];
      if (next === undefined) expect(shown).toBeUndefined();
      else expect(shown).toMatch(next);
    },
  );

  it.each(endings.filter((_, i) => i % 4 === 0))('of opmate %s is left out with --quiet', async (line) => {
    const { code, stderr } = await run(`${line} --quiet`);
    expect(code).toBe(0);
    expect(stderr).not.toContain('info: ');
  });

  it('of a plan is a command that copies the planned images', async () => {
    const directory = await world.copy();
    const options = { cwd: directory, env: world.environment() };
    const target = world.localize('docker://registry.example.com/planned');
    const planned = await sandbox.run(['mirror', 'plan', '-c', 'imageset.yaml', target], options);
    const next = /^info: next: opmate (.*)$/m.exec(planned.stderr)?.[1] ?? '';
    const { code, stderr } = await sandbox.run(next.split(' '), options);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^info: mirrored 5 images: copied /m);
  });

  it('of a plan repeats its options, and those for access to registries', async () => {
    const directory = await world.copy();
    const options = { cwd: directory, env: world.environment() };
    const target = world.localize('docker://registry.example.com/planned-with-options');
    await writeFile(path.join(directory, 'auth file.json'), '{}');
    const flags = [
      ...['--dependencies', 'add', '--max-nested-paths', '3', '--poll-interval', '30m', '--use-http'],
      ...['--dest-authfile', 'auth file.json', '--src-no-creds', '--retry-times', '1'],
    ];
    const planned = await sandbox.run(['mirror', 'plan', '-c', 'imageset.yaml', target, ...flags], options);
    const next = /^info: next: opmate (.*)$/m.exec(planned.stderr)?.[1] ?? '';
    expect(next).toMatch(
      /^mirror -c imageset\.yaml --max-nested-paths 3 --locked --dependencies add --poll-interval 1800s --plan sha256:\S+ --use-http --dest-authfile 'auth file\.json' --src-no-creds docker:/,
    );
    const words = [...next.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '');
    const { code, stderr } = await sandbox.run(words, options);
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  });

  it('of other mirror commands repeats options for access, never a password', async () => {
    const directory = await world.copy();
    const options = { cwd: directory, env: world.environment() };
    const mirror = async (...args: string[]) => {
      const { stderr } = await sandbox.run(['mirror', ...args.map((word) => world.localize(word))], options);
      return /^info: next: opmate (.*)$/m.exec(stderr)?.[1]?.replace(/sha256:\S+/, 'ID') ?? stderr;
    };
    const access = ['--use-http', '--dest-authfile', 'a.json', '--dest-creds', 'me:pa55'];
    const repeated = "--use-http --dest-authfile a.json --dest-creds 'USERNAME[:PASSWORD]'";
    await writeFile(path.join(directory, 'a.json'), '{}');
    expect(await mirror('-c', 'imageset.yaml', 'file://access', ...access)).toBe(
      `mirror --from access --id ID ${repeated} docker://REGISTRY`,
    );
    expect(await mirror('-c', 'imageset.yaml', 'file://access', '--dry-run', '--use-http')).toBe(
      'mirror -c imageset.yaml --use-http file://access',
    );
    const target = world.localize('registry.example.com/access/bundle:v1');
    const copied = `registry.example.com/demo/bundle:v1.0.0=${target}`;
    expect(await mirror(copied, '--use-http', '--dest-authfile', 'a.json')).toBe(
      `oci inspect ${target} --authfile a.json --use-http`,
    );
    expect(await mirror(copied, '--insecure')).not.toContain('oci inspect');
    const deleted = [
      'delete',
      '--delete-yaml-file',
      'delete-images.yaml',
      'docker://registry.example.com/demo-mirror',
    ];
    await mirror(
      'registry.example.com/demo/bundle:v1.0.0=registry.example.com/demo-mirror/demo/bundle:v1.0.0',
    );
    const kept = ['--dry-run', '--keep', 'opmate.lock.json', '--delete-signatures', '--use-http'];
    const config = { kind: 'ImageSetConfiguration', apiVersion: 'mirror.openshift.io/v2alpha1' };
    const images = [{ name: world.localize('registry.example.com/demo/bundle:v1.3.0') }];
    const other = JSON.stringify({ ...config, mirror: { additionalImages: images } });
    await writeFile(path.join(directory, 'other.yaml'), other);
    const planned = ['-c', 'other.yaml', 'docker://registry.example.com/other', '--lock', 'opmate.lock.json'];
    expect(await mirror('plan', ...planned)).toContain(
      'mirror -c other.yaml --lock opmate.lock.json --locked',
    );
    expect(await mirror(...deleted, ...kept)).toBe(
      world.localize(
        'mirror delete --delete-yaml-file delete-images.yaml --keep opmate.lock.json --delete-signatures --use-http docker://registry.example.com/demo-mirror',
      ),
    );
  });

  it('of an unchanged image reports that it is up to date', async () => {
    const build = 'catalog build ./catalog -t registry.example.com/again/catalog:v1 -i scratch';
    const push = 'bundle push ./bundle registry.example.com/again/bundle:v1';
    for (const line of [build, push]) {
      expect((await run(line)).stderr).toMatch(/^info: pushed .* in new layers$/m);
      const { code, stderr } = await run(line);
      expect(code).toBe(0);
      expect(stderr).toMatch(/^info: \S+\/again\/\w+:v1: already up to date$/m);
      expect(stderr).not.toContain('new layers');
    }
  });

  it.each([
    `index add -b ${bundle} ${from}`,
    `index rm --package demo ${from}`,
    `index delete-latest demo ${from}`,
    `index deprecatetruncate -b registry.example.com/demo/bundle:v1.1.0 ${from}`,
  ])('of opmate %s says what changed only once the image is pushed', async (line) => {
    const failed = await run(`${line} -t 127.0.0.1:1/ns/index:v1 --retry-timeout 2s`);
    expect(failed.code).toBe(1);
    expect(failed.stderr).toMatch(/^error: 127\.0\.0\.1:1\/ns\/index:v1: .*connection refused/m);
    expect(failed.stderr).not.toMatch(/added|removed|deprecated/);
    const { code, stderr } = await run(`${line} -t registry.example.com/endings/changed:v1`);
    expect(code).toBe(0);
    expect(stderr).toMatch(/: (?:added|removed|deprecated) [^]*\ninfo: pushed /);
  });

  it('of many added bundles is a summary, and a list with --verbose', async () => {
    const bundles = ['v1.2.0', 'v1.3.0'].map((version) => `registry.example.com/demo/bundle:${version}`);
    const line = `catalog add ./older-catalog ${bundles.join(' ')} --channel alpha,stable,beta,next`;
    const { code, stderr } = await run(line);
    expect(code).toBe(0);
    const lines = stderr.trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(5);
    expect(lines.at(-2)).toMatch(/^info: … and \d+ more changes; --verbose lists all$/);
    expect(lines.at(-1)).toMatch(/^info: \.\/older-catalog: \d+ files? changed$/);
    const all = await run(`${line} --verbose`);
    expect(all.stderr.match(/^info: /gm)?.length).toBeGreaterThan(5);
  });

  it('of a locked run names the lock, and JSON lists all output files', async () => {
    const directory = await world.copy();
    const options = { cwd: directory, env: world.environment() };
    const target = world.localize('docker://registry.example.com/by-lock');
    const mirror = (...args: string[]) => sandbox.run(['mirror', ...args], options);
    const planned = await mirror(
      'plan',
      '-c',
      'imageset.yaml',
      target,
      '--workspace',
      'file://ws',
      '-o',
      'json',
    );
    const lock = 'ws/working-dir/opmate.lock.json';
    const { plan } = JSON.parse(planned.stdout) as { plan: string };
    expect(JSON.parse(planned.stdout)).toMatchObject({
      destination: target,
      lock,
      plan: expect.stringMatching(/^sha256:/) as string,
      images: 5,
    });

    const locked = await mirror(
      '-c',
      'imageset.yaml',
      '--locked',
      target,
      '--workspace',
      'file://ws',
      '-o',
      'json',
    );
    expect(locked.stderr).toMatch(/^info: used the lock ws\/working-dir\/opmate\.lock\.json$/m);
    expect(locked.stderr.trimEnd().split('\n').length).toBeLessThanOrEqual(5);
    const { resources, images, ...result } = JSON.parse(locked.stdout) as Record<string, unknown[]>;
    expect(result).toMatchObject({ lock, plan, missing: [], failed: [], waiting: 0 });
    expect(images).toHaveLength(5);
    const written = await readdir(path.join(directory, 'ws/working-dir/cluster-resources'));
    expect(resources).toEqual(written.sort().map((name) => `ws/working-dir/cluster-resources/${name}`));

    const carried = await mirror('-c', 'imageset.yaml', 'file://carry', '-o', 'json');
    const { archive } = JSON.parse(carried.stdout) as { archive: { id: string; parts: string[] } };
    expect(carried.stderr).toContain(`--id ${archive.id} `);
    expect(archive).toMatchObject({ directory: 'carry', images: 5, parts: ['mirror_000001.tar'] });

    const far = await mirror('--from', 'carry', `${target}/far`, '-o', 'json');
    expect(far.stderr).toMatch(/^info: used the lock of archive carry$/m);
    expect(far.stderr.trimEnd().split('\n').length).toBeLessThanOrEqual(5);
    expect(JSON.parse(far.stdout)).toMatchObject({ lock: 'carry' });
  });
});
