import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { imageLabels } from '../../src/model/image-labels.js';
import { useSandbox } from '../support/command-line.js';
import { startFaultRegistry } from '../support/fault-registry.js';
import { type SmallBundle, inDirectory, smallBundle } from '../support/small-bundle.js';
import { makeImage, serveBuilt } from './images.js';

const sandbox = useSandbox();
const template = ['--alpha-image-ref-template', 'registry.test/widget:v{{.Version}}'];

const catalog = `---
# The widget operator
schema: olm.package
name: widget
defaultChannel: stable # for all
---
schema: olm.channel
package: widget
name: stable
# oldest first
entries:
  - name: widget.v1.0.0 # the first
  # fixes the first
  - name: widget.v1.1.0
    replaces: widget.v1.0.0   # in place
    skips: [widget.v1.0.1]
---
schema: olm.channel
package: widget
name: candidate
entries:
  - name: widget.v1.1.0
---
schema: olm.bundle
package: widget
name: widget.v1.0.0
image: registry.test/widget:v1.0.0
properties:
  - {type: olm.package, value: {packageName: widget, version: 1.0.0}} # flow
---
schema: olm.bundle
package: widget
name: widget.v1.1.0
image: registry.test/widget:v1.1.0
properties:
  - {type: olm.package, value: {packageName: widget, version: 1.1.0}}
---
schema: example.note
package: widget
text: |
  kept as it is
`;
const file = 'catalog/widget/catalog.yaml';

function at(name: string): string {
  return path.join(sandbox.work, name);
}

function read(name = file): Promise<string> {
  return readFile(at(name), 'utf8');
}

async function bundle(content: SmallBundle): Promise<string> {
  const { packageName = 'widget', version = '1.0.0' } = content;
  const directory = `bundles/${packageName}-${version}`;
  await rm(at(directory), { recursive: true, force: true });
  await sandbox.write(inDirectory(directory, smallBundle(content)));
  return directory;
}

async function isValid(): Promise<boolean> {
  return (await sandbox.run(['validate', 'catalog'])).code === 0;
}

beforeEach(async () => {
  await rm(at('catalog'), { recursive: true, force: true });
  await sandbox.write({ [file]: catalog });
});

describe('opmate catalog add', () => {
  it('warns of a bundle directory without the reference of its image', async () => {
    const reference = await bundle({ version: '1.2.0', replaces: 'widget.v1.1.0' });
    const result = await sandbox.run(['catalog', 'add', 'catalog', reference]);
    expect(result).toMatchObject({ code: 0 });
    expect(result.stderr).toContain('warn: bundles/widget-1.2.0: bundle "widget.v1.2.0" has no image (');
  });

  it('adds a bundle as reported, and changes nothing else', async () => {
    const reference = await bundle({ version: '1.2.0', replaces: 'widget.v1.1.0' });
    const result = await sandbox.run(['catalog', 'add', 'catalog', reference, ...template]);
    expect(result).toEqual({
      code: 0,
      stdout: '',
      stderr:
        'info: package "widget", channel "stable": added "widget.v1.2.0", replaces "widget.v1.1.0"\n' +
        'info: catalog: 1 file changed\n',
    });
    const text = await read();
    const [before, after] = text.split('  - name: widget.v1.2.0\n    replaces: widget.v1.1.0\n') as [
      string,
      string,
    ];
    const end = catalog.indexOf('---\nschema: olm.channel\npackage: widget\nname: candidate');
    expect(before).toBe(catalog.slice(0, end));
    const note = catalog.indexOf('---\nschema: example.note');
    expect(after.startsWith(catalog.slice(end, note))).toBe(true);
    expect(after.endsWith(catalog.slice(note))).toBe(true);
    expect(after).toContain('---\nimage: registry.test/widget:v1.2.0\nname: widget.v1.2.0\n');
    expect(await isValid()).toBe(true);
    const back = [
      'catalog',
      'remove',
      'catalog',
      '--package',
      'widget',
      '--bundle',
      'widget.v1.2.0',
      '--force',
    ];
    expect((await sandbox.run(back)).code).toBe(0);
    expect(await read()).toBe(catalog);
  });

  it('links by version in the semver mode, and folds patches with skippatch', async () => {
    const references = [await bundle({ version: '1.1.2' }), await bundle({ version: '1.0.5' })];
    const flags = ['--channels', 'stable', '--mode', 'semver', '--skip-range', '<1.0.0', ...template];
    expect((await sandbox.run(['catalog', 'add', 'catalog', ...references, ...flags])).code).toBe(0);
    const entries = (await read()).split('entries:\n')[1]?.split('---')[0];
    expect(entries).toBe(`  - name: widget.v1.0.0 # the first
  - name: widget.v1.0.5
    replaces: widget.v1.0.0
    skipRange: <1.0.0
  # fixes the first
  - name: widget.v1.1.0
    replaces: widget.v1.0.5   # in place
    skips: [widget.v1.0.1]
  - name: widget.v1.1.2
    replaces: widget.v1.1.0
    skipRange: <1.0.0
`);
    const next = await bundle({ version: '1.1.3' });
    const more = ['--channels', 'stable', '--mode', 'semver-skippatch', ...template];
    expect((await sandbox.run(['catalog', 'add', 'catalog', next, ...more])).code).toBe(0);
    expect(await read()).toContain(`  - name: widget.v1.1.3
    replaces: widget.v1.0.5
    skips:
    - widget.v1.1.0
    - widget.v1.0.1
    - widget.v1.1.2
`);
    expect(await isValid()).toBe(true);
  });

  it('creates packages and channels in the format of the directory', async () => {
    const icon = [{ base64data: 'aWNvbg==', mediatype: 'image/svg+xml' }];
    const spec = { icon, description: 'Makes gadgets.' };
    const references = [
      await bundle({
        packageName: 'gadget',
        version: '0.2.0',
        channels: 'alpha,beta',
        defaultChannel: 'beta',
        spec,
      }),
      await bundle({ packageName: 'gadget', version: '0.1.0', channels: 'alpha', spec }),
    ];
    const flags = ['--mode', 'semver', ...template];
    expect((await sandbox.run(['catalog', 'add', 'catalog', ...references, ...flags])).code).toBe(0);
    const text = await read('catalog/gadget/catalog.yaml');
    expect(text.split('image: ')[0]).toBe(`---
defaultChannel: beta
description: Makes gadgets.
icon:
  base64data: aWNvbg==
  mediatype: image/svg+xml
name: gadget
schema: olm.package
---
entries:
- name: gadget.v0.1.0
- name: gadget.v0.2.0
  replaces: gadget.v0.1.0
name: alpha
package: gadget
schema: olm.channel
---
entries:
- name: gadget.v0.2.0
name: beta
package: gadget
schema: olm.channel
---
`);
    expect(await read()).toBe(catalog);
    expect(await isValid()).toBe(true);
    const gone = ['catalog', 'remove', 'catalog', '--package', 'gadget', '--force'];
    expect((await sandbox.run(gone)).code).toBe(0);
    expect(await readdir(at('catalog'))).toEqual(['widget']);
  });

  it('creates a catalog in an empty directory', async () => {
    await mkdir(at('empty'));
    const reference = await bundle({ version: '1.0.0' });
    expect((await sandbox.run(['catalog', 'add', 'empty', reference, ...template])).code).toBe(0);
    expect((await sandbox.run(['validate', 'empty'])).code).toBe(0);
    await rm(at('empty'), { recursive: true });
  });

  describe('to a package created by init', () => {
    const begin = async (...flags: string[]): Promise<string> => {
      await rm(at('catalog'), { recursive: true });
      const { stdout } = await sandbox.run(['init', 'widget', ...flags, '-o', 'yaml']);
      await sandbox.write({ 'catalog/package.yaml': stdout });
      return stdout;
    };
    const add = async (...flags: string[]) => {
      const reference = await bundle({ version: '1.0.0', channels: 'alpha,fast' });
      return sandbox.run(['catalog', 'add', 'catalog', reference, ...flags, ...template]);
    };
    const channels = async (): Promise<string> =>
      (await sandbox.run(['list', 'channels', 'catalog'])).stdout.replace(/ +/g, ' ');

    it('adds the first bundle to its default channel, and keeps the blob', async () => {
      const begun = await begin('--default-channel', 'stable');
      expect(await add('--channel', 'stable')).toMatchObject({ code: 0 });
      expect(await isValid()).toBe(true);
      expect((await read('catalog/package.yaml')).startsWith(begun)).toBe(true);
      expect(await channels()).toContain('widget stable widget.v1.0.0');
    });

    it.each([
      [[], [], 'defaultChannel: alpha'],
      [[], ['--default-channel', 'fast'], 'defaultChannel: fast'],
      [['--default-channel', 'stable'], ['--default-channel', 'fast'], 'defaultChannel: fast'],
    ])('init %j, add %j: %s', async (flags, more, expected) => {
      await begin(...flags);
      expect(await add(...more)).toMatchObject({ code: 0 });
      expect(await isValid()).toBe(true);
      expect(await read('catalog/package.yaml')).toContain(expected);
    });

    it('refuses a bundle that is not in its default channel', async () => {
      const begun = await begin('--default-channel', 'stable');
      const { code, stderr } = await add();
      expect(code).toBe(1);
      expect(stderr).toContain('default channel "stable" has no olm.channel blob');
      expect(stderr).toContain('set defaultChannel to one of its channels: "alpha", "fast"');
      expect(await read('catalog/package.yaml')).toBe(begun);
    });

    it('refuses a catalog with another empty or invalid package', async () => {
      await begin('--default-channel', 'stable');
      const other = (await sandbox.run(['init', 'gadget', '-c', 'stable'])).stdout;
      await sandbox.write({ 'catalog/gadget.json': other });
      const left = await add('--channel', 'stable');
      expect(left).toMatchObject({ code: 1 });
      expect(left.stderr).toContain('package "gadget": default channel "stable" has no olm.channel blob');
      const channel = { schema: 'olm.channel', package: 'gadget', name: 'other', entries: [] };
      await sandbox.write({ 'catalog/gadget.json': `${other}${JSON.stringify(channel)}` });
      const broken = await add('--channel', 'stable');
      expect(broken).toMatchObject({ code: 1 });
      expect(broken.stderr).toContain('channel must contain at least one bundle');
      expect(await readdir(at('catalog'))).toEqual(['gadget.json', 'package.yaml']);
    });
  });

  it('writes JSON with the indentation of its file', async () => {
    await rm(at('catalog'), { recursive: true });
    const entries = [{ name: 'widget.v1.0.0' }];
    const blobs = [
      { schema: 'olm.package', name: 'widget', defaultChannel: 'stable', 'x-note': 1 },
      { schema: 'olm.channel', package: 'widget', name: 'stable', entries, 'x-note': { kept: true } },
      {
        schema: 'olm.bundle',
        package: 'widget',
        name: 'widget.v1.0.0',
        image: 'registry.test/widget:v1.0.0',
        properties: [{ type: 'olm.package', value: { packageName: 'widget', version: '1.0.0' } }],
      },
    ];
    const text = blobs.map((blob) => `${JSON.stringify(blob, null, 2)}\n`);
    await sandbox.write({ 'catalog/index.json': text.join('') });
    const reference = await bundle({ version: '1.1.0', replaces: 'widget.v1.0.0' });
    expect((await sandbox.run(['catalog', 'add', 'catalog', reference, ...template])).code).toBe(0);
    const added = {
      ...blobs[1],
      entries: [...entries, { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' }],
    };
    const expected = `${text[0]}${JSON.stringify(added, null, 2)}\n${text[2]}{\n  "schema": "olm.bundle",\n  "name": "widget.v1.1.0",`;
    expect((await read('catalog/index.json')).slice(0, expected.length)).toBe(expected);
  });

  it('prints a diff for patch with --dry-run, and changes nothing', async () => {
    const references = [
      await bundle({ version: '1.2.0' }),
      await bundle({ packageName: 'gadget', version: '1.0.0' }),
    ];
    const args = ['catalog', 'add', 'catalog', ...references, '--mode', 'semver', ...template];
    const { code, stdout } = await sandbox.run([...args, '--dry-run']);
    expect(code).toBe(0);
    expect(await read()).toBe(catalog);
    expect(await readdir(at('catalog'))).toEqual(['widget']);
    await cp(at('catalog'), at('patched'), { recursive: true });
    await writeFile(at('patched.diff'), stdout);
    await promisify(execFile)('git', ['apply', '--directory=patched', 'patched.diff'], { cwd: sandbox.work });
    expect((await sandbox.run(args)).code).toBe(0);
    for (const name of ['widget', 'gadget']) {
      expect(await read(`patched/${name}/catalog.yaml`)).toBe(await read(`catalog/${name}/catalog.yaml`));
    }
    await rm(at('patched'), { recursive: true });
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('reports all bundles that cannot be read or added, and adds none', async () => {
    const known = await bundle({ version: '1.1.0' });
    const twice = await bundle({ version: '1.2.0', replaces: 'widget.v1.1.0' });
    const missing = await sandbox.run([
      'catalog',
      'add',
      'catalog',
      twice,
      './nowhere',
      './neither',
      ...template,
    ]);
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain('./nowhere');
    expect(missing.stderr).toContain('./neither');
    const there = await sandbox.run(['catalog', 'add', 'catalog', known, twice, twice, ...template]);
    expect(there.stderr).toContain(
      'bundle "widget.v1.1.0" already exists in package "widget" (replace it with --overwrite)',
    );
    expect(there.stderr).toContain('is also in bundles/widget-1.2.0');
    expect(await read()).toBe(catalog);
  });

  it('pulls bundle images, and reports every missing one', async () => {
    const registry = await startFaultRegistry();
    try {
      const labels = {
        [imageLabels.bundlePackage]: 'widget',
        [imageLabels.bundleManifests]: 'manifests/',
        [imageLabels.bundleMetadata]: 'metadata/',
      };
      for (const version of ['1.2.0', '1.3.0']) {
        const image = await makeImage({ files: smallBundle({ version }), labels });
        serveBuilt(registry, 'ns/widget', version, image);
      }
      const images = ['1.3.0', '1.2.0', '1.4.0', '1.5.0'].map((tag) => `${registry.host}/ns/widget:${tag}`);
      const flags = ['--mode', 'semver', '--channels', 'candidate', '--use-http'];
      const failed = await sandbox.run(['catalog', 'add', 'catalog', ...images, ...flags]);
      expect(failed.code).toBe(1);
      for (const image of images.slice(2)) expect(failed.stderr).toContain(image);
      expect(failed.stderr).not.toContain(images[0]);
      expect(await read()).toBe(catalog);
      const done = await sandbox.run(['catalog', 'add', 'catalog', ...images.slice(0, 2), ...flags]);
      expect(done).toMatchObject({ code: 0, stderr: expect.stringContaining('1 file changed') });
      const text = await read();
      for (const image of images.slice(0, 2)) expect(text).toContain(`image: ${image}\n`);
      expect(text).toContain(`  - name: widget.v1.1.0
  - name: widget.v1.2.0
    replaces: widget.v1.1.0
  - name: widget.v1.3.0
    replaces: widget.v1.2.0
`);
      expect(await isValid()).toBe(true);
    } finally {
      await registry.close();
    }
  });

  it('replaces a bundle with --overwrite only', async () => {
    const reference = await bundle({ version: '1.1.0', annotations: { 'olm.skipRange': '<1.1.0' } });
    const flags = [
      '--overwrite',
      '--mode',
      'semver',
      '--alpha-image-ref-template',
      'registry.test/rebuilt:{{.Version}}',
    ];
    expect((await sandbox.run(['catalog', 'add', 'catalog', reference, ...flags])).code).toBe(0);
    const text = await read();
    expect(text).toContain('image: registry.test/rebuilt:1.1.0');
    expect(text.split('image: ')[0]).toBe(catalog.split('image: ')[0]);
    expect(await isValid()).toBe(true);
  });

  it('never makes a valid catalog invalid, and refuses invalid ones', async () => {
    const reference = await bundle({ version: '1.2.0' });
    const two = await sandbox.run(['catalog', 'add', 'catalog', reference, ...template]);
    expect(two.code).toBe(1);
    expect(two.stderr).toContain('multiple channel heads found in graph: widget.v1.1.0, widget.v1.2.0');
    expect(two.stderr).toContain('hint: set --replaces, or add it by its version with --mode semver');
    expect(await read()).toBe(catalog);
    const wrong = ['--replaces', 'widget.v1.1.O', ...template];
    expect((await sandbox.run(['catalog', 'add', 'catalog', reference, ...wrong])).stderr).toContain(
      'replaces of "widget.v1.2.0": bundle "widget.v1.1.O" not found',
    );
    await sandbox.write({ [file]: catalog.replace('replaces: widget.v1.0.0', 'replaces: widget.v0.0.1') });
    const invalid = await sandbox.run([
      'catalog',
      'add',
      'catalog',
      reference,
      '--mode',
      'semver',
      ...template,
    ]);
    expect(invalid.code).toBe(1);
    expect(invalid.stderr).toContain('catalog: package "widget" channel "stable": multiple channel heads');
  });

  it('refuses conflicting flags', async () => {
    const [one, two] = [await bundle({ version: '1.2.0' }), await bundle({ version: '1.3.0' })];
    for (const flags of [
      [one, '--mode', 'semver', '--replaces', 'widget.v1.1.0'],
      [one, two, '--replaces', 'widget.v1.1.0'],
      [one, two, '--skips', 'widget.v1.1.0'],
      [one, '--mode', 'newest'],
    ]) {
      expect((await sandbox.run(['catalog', 'add', 'catalog', ...flags, ...template])).code).toBe(2);
    }
  });

  it('follows links within the catalog, not out of it', async () => {
    const reference = await bundle({ version: '1.2.0', replaces: 'widget.v1.1.0' });
    await sandbox.write({
      'outside.yaml': catalog,
      'catalog/.indexignore': 'real\n',
      'catalog/real/widget.yaml': catalog,
    });
    await rm(at(file));
    await symlink('../../outside.yaml', at(file));
    const out = await sandbox.run(['catalog', 'add', 'catalog', reference, ...template]);
    expect(out.code).toBe(1);
    expect(out.stderr).toContain(
      `${file}: links to ${JSON.stringify(at('outside.yaml'))}, outside of the directory`,
    );
    const followed = await sandbox.run([
      'catalog',
      'add',
      'catalog',
      reference,
      ...template,
      '--follow-links',
    ]);
    expect(followed.stderr).toContain(`${file}: is a link that leads out of the catalog`);
    expect(await read('outside.yaml')).toBe(catalog);
    await rm(at(file));
    await symlink('../real/widget.yaml', at(file));
    expect((await sandbox.run(['catalog', 'add', 'catalog', reference, ...template])).code).toBe(0);
    expect(await read('catalog/real/widget.yaml')).toContain('widget.v1.2.0');
  });

  it('refuses a new file that .indexignore would hide', async () => {
    const reference = await bundle({ packageName: 'gadget', version: '1.0.0' });
    await sandbox.write({ 'catalog/.indexignore': 'gadget/\n' });
    const { code, stderr } = await sandbox.run(['catalog', 'add', 'catalog', reference, ...template]);
    expect(code).toBe(1);
    expect(stderr).toContain(
      'catalog/gadget/catalog.yaml: an .indexignore excludes this file from the catalog',
    );
    expect((await readdir(at('catalog'))).sort()).toEqual(['.indexignore', 'widget']);
  });
});

describe('opmate catalog remove', () => {
  const remove = (...args: string[]) =>
    sandbox.run(['catalog', 'remove', 'catalog', '--package', 'widget', ...args]);

  it('removes a bundle, repairs the graph and drops its deprecation', async () => {
    const deprecate = ['catalog', 'deprecate', 'catalog', '--package', 'widget', '--message', 'old'];
    expect((await sandbox.run([...deprecate, '--bundle', 'widget.v1.0.0'])).code).toBe(0);
    const { code, stderr } = await remove('--bundle', 'widget.v1.0.0');
    expect(code).toBe(0);
    expect(stderr).toContain('package "widget": removed "widget.v1.0.0"');
    const text = await read();
    expect(text).not.toMatch(/olm\.deprecations|name: widget\.v1\.0\.0/);
    expect(text).toContain('- widget.v1.0.0\n');
    expect(text).toContain('text: |\n  kept as it is\n');
    expect(await isValid()).toBe(true);
  });

  it('drops the deprecations of what it removes only', async () => {
    const deprecate = ['catalog', 'deprecate', 'catalog', '--package', 'widget'];
    await sandbox.run([...deprecate, '--bundle', 'widget.v1.0.0', '--message', 'old']);
    await sandbox.run([...deprecate, '--channel', 'candidate', '--message', 'use stable']);
    await sandbox.run([...deprecate, '--message', 'use gadget']);
    const gone = (await remove('--bundle', 'widget.v1.0.0')).stderr;
    expect(gone).toContain('package "widget": no longer deprecated: "widget.v1.0.0"\n');
    expect((await remove('--channel', 'candidate')).stderr).toContain('no longer deprecated: "candidate"\n');
    expect((await read()).split('---\n').at(-1)).toBe(
      'entries:\n- message: use gadget\n  reference:\n    schema: olm.package\npackage: widget\nschema: olm.deprecations\n',
    );
    expect(await isValid()).toBe(true);
  });

  it('refuses removals that strand clusters, with a list, unless forced', async () => {
    const { code, stderr } = await remove('--bundle', 'widget.v1.1.0', '--default-channel', 'stable');
    expect(code).toBe(3);
    expect(stderr).toContain(
      'package "widget", channel "stable": clusters with "widget.v1.0.1", "widget.v1.1.0" would have no upgrade path',
    );
    expect(stderr).toContain('use --force to remove anyway');
    expect(await read()).toBe(catalog);
    expect((await remove('--bundle', 'widget.v1.1.0', '--force')).code).toBe(0);
    expect(await isValid()).toBe(true);
    expect(await read()).not.toContain('candidate');
  });

  it('removes a channel, the default one only with a replacement', async () => {
    const refused = await remove('--channel', 'stable', '--force');
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('its default channel "stable" would be removed');
    const forced = await remove('--channel', 'stable', '--default-channel', 'candidate', '--force');
    expect(forced.code).toBe(0);
    expect(await read()).toContain('defaultChannel: candidate # for all\n');
    expect(await isValid()).toBe(true);
    expect(await read()).not.toContain('widget.v1.0.0');
  });

  it('suggests the nearest name for an unknown one', async () => {
    const { code, stderr } = await remove('--bundle', 'widgt.v1.1.0,wodget.v1.0.0');
    expect(code).toBe(1);
    expect(stderr).toContain(
      'bundle "widgt.v1.1.0" not found in package "widget" (did you mean "widget.v1.1.0"?)',
    );
    expect(stderr).toContain(
      'bundle "wodget.v1.0.0" not found in package "widget" (did you mean "widget.v1.0.0"?)',
    );
    expect((await sandbox.run(['catalog', 'remove', 'catalog', '--package', 'widgets'])).stderr).toContain(
      'did you mean "widget"?',
    );
    expect((await sandbox.run(['catalog', 'remove', 'catalog'])).code).toBe(2);
    expect((await remove('--bundle', 'widget.v1.0.0', '--channel', 'stable')).code).toBe(2);
  });
});

describe('opmate catalog deprecate', () => {
  const deprecate = (...args: string[]) =>
    sandbox.run(['catalog', 'deprecate', 'catalog', '--package', 'widget', ...args]);

  it('adds, changes and removes deprecations', async () => {
    await sandbox.write({ 'message.txt': 'Version 1.0 is old.\nUse `stable`: #1\n' });
    expect((await deprecate('--bundle', 'widget.v1.0.0', '--message-file', 'message.txt')).code).toBe(0);
    expect((await deprecate('--channel', 'candidate', '--message', 'use stable')).code).toBe(0);
    expect((await deprecate('--message', 'use gadget')).code).toBe(0);
    expect((await deprecate('--channel', 'candidate', '--message', 'use "stable": now')).code).toBe(0);
    expect((await read()).slice(catalog.length)).toBe(`---
entries:
- message: |-
    Version 1.0 is old.
    Use \`stable\`: #1
  reference:
    name: widget.v1.0.0
    schema: olm.bundle
- message: 'use "stable": now'
  reference:
    name: candidate
    schema: olm.channel
- message: use gadget
  reference:
    schema: olm.package
package: widget
schema: olm.deprecations
`);
    expect(await isValid()).toBe(true);
    const same = await deprecate('--message', 'use gadget');
    expect(same).toMatchObject({ code: 0, stderr: 'info: catalog: nothing to change\n' });
    for (const what of [['--channel', 'candidate'], ['--bundle', 'widget.v1.0.0'], []]) {
      expect((await deprecate(...what, '--undo')).code).toBe(0);
    }
    expect(await read()).toBe(catalog);
    expect((await deprecate('--undo')).stderr).toContain('package "widget" is not deprecated');
  });

  it('validates its arguments', async () => {
    expect((await deprecate('--channel', 'stabel', '--message', 'x')).stderr).toContain(
      'did you mean "stable"?',
    );
    expect((await deprecate('--message', ' ')).stderr).toContain('missing deprecation message');
    expect((await deprecate()).code).toBe(2);
    expect((await deprecate('--message', 'x', '--undo')).code).toBe(2);
    expect((await deprecate('--message', 'x', '--channel', 'stable', '--bundle', 'y')).code).toBe(2);
    expect(await read()).toBe(catalog);
  });
});
