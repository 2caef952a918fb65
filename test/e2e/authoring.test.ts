import { mkdir, readFile, readdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { bundlesDirectory, useSandbox } from '../support/command-line.js';
import { caseOf, catalogOf, widgetCatalog } from './catalogs.js';
import { makeCatalogImage, storeImage } from './images.js';

const sandbox = useSandbox();
const at = (...parts: string[]): string => path.join(sandbox.work, ...parts);
const filesOf = async (directory: string): Promise<string[]> => {
  const entries = await readdir(at(directory), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(at(directory), path.join(entry.parentPath, entry.name)))
    .sort();
};

describe('opmate init', () => {
  it('writes the package blob, with description and icon', async () => {
    const svg = '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>\n';
    await sandbox.write({ 'README.md': '# Widget <1>\n\nMakes & keeps widgets.\n', 'icon.txt': svg });
    const args = ['init', 'widget', '-c', 'stable', '-d', 'README.md', '-i', 'icon.txt'];
    const { code, stdout, stderr } = await sandbox.run(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({
      schema: 'olm.package',
      name: 'widget',
      defaultChannel: 'stable',
      description: '# Widget <1>\n\nMakes & keeps widgets.\n',
      icon: { base64data: Buffer.from(svg).toString('base64'), mediatype: 'image/svg+xml' },
    });
    expect(stdout).toMatch(/^{\n {4}"schema": "olm.package",\n {4}"name": "widget",/);
    const yaml = await sandbox.run([...args, '-o', 'yaml']);
    expect(load(yaml.stdout)).toEqual(JSON.parse(stdout));
  });

  it.each([
    ['image/png', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')],
    ['image/jpeg', Buffer.from('ffd8ffe000104a464946', 'hex')],
    ['image/gif', Buffer.from('GIF89a')],
    ['image/heif', Buffer.from('\0\0\0\x14ftypmif1\0\0\0\0heic', 'latin1')],
  ])('tells %s by its bytes, whatever the name of the file', async (type, bytes) => {
    await sandbox.write({ 'icon.svg': bytes });
    const { stdout } = await sandbox.run(['init', 'widget', '--icon', 'icon.svg']);
    expect(JSON.parse(stdout)).toMatchObject({ icon: { mediatype: type } });
  });

  it('takes an empty file name for no file', async () => {
    const { stdout } = await sandbox.run(['init', 'widget', '-i', '', '-d', '']);
    expect(JSON.parse(stdout)).toEqual({ schema: 'olm.package', name: 'widget', defaultChannel: '' });
  });

  it('refuses an icon that is not an image, and missing files', async () => {
    const avif = '\0\0\0\x14ftypmif1\0\0\0\0avif';
    await sandbox.write({ 'icon.svg': 'hello', 'empty.svg': '', 'icon.avif': avif });
    const cases = [
      { args: ['-i', 'icon.avif'], message: 'not an image' },
      { args: ['-i', 'icon.svg'], message: 'not an image' },
      { args: ['-i', 'empty.svg'], message: 'check empty.svg: the file is empty' },
      { args: ['-i', 'none.svg'], message: 'none.svg: no such file or directory' },
      { args: ['-d', 'none.md'], message: 'none.md: no such file or directory' },
      { args: ['-o', 'toml'], message: 'invalid --output value "toml"' },
    ];
    for (const { args, message } of cases) {
      const { code, stdout, stderr } = await sandbox.run(['init', 'widget', ...args]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain(message);
    }
  });
});

describe('opmate migrate', () => {
  it('writes one file per package to a new or empty directory', async () => {
    const custom = '{"schema":"example.note","text":"of no package"}\n';
    await sandbox.write({
      'in/all.json': widgetCatalog + catalogOf('gadget', [{ name: 'gadget.v1' }]) + custom,
    });
    expect(await sandbox.run(['migrate', 'in', 'new'])).toMatchObject({ code: 0, stdout: '' });
    expect(await filesOf('new')).toEqual(['catalog.json', 'gadget/catalog.json', 'widget/catalog.json']);
    await mkdir(at('empty'));
    expect(await sandbox.run(['migrate', 'in', 'empty', '-o', 'yaml'])).toMatchObject({
      code: 0,
      stdout: '',
    });
    expect(await filesOf('empty')).toEqual(['catalog.yaml', 'gadget/catalog.yaml', 'widget/catalog.yaml']);
    const rendered = await sandbox.run(['render', 'in']);
    for (const directory of ['new', 'empty']) {
      const blobs = (text: string): string[] => text.split(/(?<=\n}\n)(?={)/).sort();
      const again = await sandbox.run(['render', directory]);
      expect(blobs(again.stdout)).toEqual(blobs(rendered.stdout));
    }
  });

  it('warns of packages that share a directory where case is ignored, and names one with too long a name', async () => {
    const packages = ['gadget', 'Gadget', 'other'].map((name) => catalogOf(name, [{ name: `${name}.v1` }]));
    await sandbox.write({ 'case/all.json': packages.join('') });
    const result = await sandbox.run(['migrate', 'case', 'case-out']);
    expect(result).toMatchObject({ code: 0 });
    expect(result.stderr).toContain(
      'warn: packages "Gadget", "gadget": one directory on disks that ignore case\n',
    );
    const long = 'x'.repeat(256);
    await sandbox.write({ 'long/all.json': catalogOf(long, [{ name: 'long.v1' }]) });
    const refused = await sandbox.run(['migrate', 'long', 'long-out']);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toMatch(/package "x+…?"?.*: name of 256 bytes, maximum 255 for a directory/);
    expect(await readdir(sandbox.work)).not.toContain('long-out');
  });

  it('reads a catalog image', async () => {
    await storeImage(at('layout'), 'v1', await makeCatalogImage({ 'all.json': widgetCatalog }));
    expect(await sandbox.run(['migrate', 'oci:layout:v1', 'from-image'])).toMatchObject({ code: 0 });
    expect(await filesOf('from-image')).toEqual(['widget/catalog.json']);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('refuses a directory that is not empty', async () => {
    await sandbox.write({ 'in/all.json': widgetCatalog, 'full/mine.txt': 'keep' });
    const { code, stderr } = await sandbox.run(['migrate', 'in', 'full']);
    expect(code).toBe(1);
    expect(stderr).toContain('output dir "full" must be empty');
    expect(await filesOf('full')).toEqual(['mine.txt']);
  });

  it.each([
    ['a broken catalog', { 'all.json': `${widgetCatalog}{"schema":` }],
    ['a package whose name is a path', { 'all.json': '{"schema":"olm.package","name":"../../evil"}' }],
  ])('leaves nothing behind when it fails for %s', async (name, files) => {
    const source = name.replaceAll(' ', '-');
    await sandbox.write(
      Object.fromEntries(Object.entries(files).map(([file, text]) => [`failing/${source}/${file}`, text])),
    );
    const before = await readdir(sandbox.work);
    const { code, stdout } = await sandbox.run(['migrate', `failing/${source}`, 'target']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(await readdir(sandbox.work)).toEqual(before);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('lets one of two concurrent writers of a directory succeed', async () => {
    await sandbox.write({ 'in/all.json': widgetCatalog });
    const runs = await Promise.all([1, 2, 3].map(() => sandbox.run(['migrate', 'in', 'contested'])));
    expect(runs.map(({ code }) => code).sort()).toEqual([0, 1, 1]);
    for (const { code, stderr } of runs) {
      if (code === 1) expect(stderr).toContain('output dir "contested" must be empty');
    }
    expect((await readdir(sandbox.work)).filter((name) => name.startsWith('contested'))).toEqual([
      'contested',
    ]);
  });

  it('does not read an empty name as the working directory', async () => {
    await sandbox.write({ 'in/all.json': widgetCatalog });
    const { code, stderr } = await sandbox.run(['migrate', 'in', '']);
    expect(code).toBe(1);
    expect(stderr).toContain('output dir "": no such file or directory');
  });

  it('refuses a bundle', async () => {
    const { code, stderr } = await sandbox.run([
      'migrate',
      path.join(bundlesDirectory, 'microcks/0.3.0'),
      'target',
    ]);
    expect(code).toBe(1);
    expect(stderr).toContain('not allowed');
  });
});

describe('opmate generate dockerfile', () => {
  const read = (name: string): Promise<string> => readFile(at(name), 'utf8');

  it('writes the Dockerfile beside the catalog', async () => {
    await sandbox.write({ 'catalogs/one/all.json': widgetCatalog });
    expect(await sandbox.run(['generate', 'dockerfile', 'catalogs/one/'])).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
    const text = await read('catalogs/one.Dockerfile');
    for (const line of [
      'FROM quay.io/operator-framework/opm:latest as builder',
      'ADD one /configs',
      'COPY --from=builder /tmp/cache /tmp/cache',
      'LABEL operators.operatorframework.io.index.configs.v1=/configs',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
  });

  it('accepts images and labels', async () => {
    await sandbox.write({ 'two/all.json': widgetCatalog });
    const images = ['-i', 'scratch', '-b', 'registry.test/opm:v1'];
    const labels = ['-l', 'b=2,a=1', '--extra-labels', 'c=x=y'];
    expect(await sandbox.run(['generate', 'dockerfile', 'two', ...images, ...labels])).toMatchObject({
      code: 0,
    });
    const text = await read('two.Dockerfile');
    expect(text).toContain('FROM registry.test/opm:v1 as builder\n');
    expect(text).toContain('\nFROM scratch\n');
    expect(text).not.toContain('ENTRYPOINT');
    expect(text.slice(text.indexOf('LABEL "'))).toBe('LABEL "a"="1"\nLABEL "b"="2"\nLABEL "c"="x=y"\n');
  });

  it('does not overwrite a file', async () => {
    await sandbox.write({ 'three/all.json': widgetCatalog, 'three.Dockerfile': 'mine' });
    const { code, stderr } = await sandbox.run(['generate', 'dockerfile', 'three']);
    expect(code).toBe(1);
    expect(stderr).toContain('three.Dockerfile": file already exists');
    expect(await read('three.Dockerfile')).toBe('mine');
  });

  it('names the path of a link loop once', async () => {
    await symlink('loop', path.join(sandbox.work, 'loop'));
    const { code, stderr } = await sandbox.run(['generate', 'dockerfile', 'loop']);
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'error: loop: too many levels of symbolic links\n' });
  });

  it.each([
    [['none'], 'none: no such file or directory'],
    [['four/all.json'], 'provided root path "four/all.json" is not a directory'],
    [['four', '-i', ''], 'base image is unset'],
    [['four', '-b', ''], 'builder image is unset'],
    [['four', '-b', 'scratch'], 'invalid builder image: "scratch"'],
    [['four', '-l', 'novalue'], 'invalid label "novalue"'],
    [['four', '-i', 'a', '--binary-image', 'b'], '--binary-image and --base-image cannot be used together'],
  ])('refuses %j and writes nothing', async (args, message) => {
    await sandbox.write({ 'four/all.json': widgetCatalog });
    const { code, stderr } = await sandbox.run(['generate', 'dockerfile', ...args]);
    expect(code).toBe(1);
    expect(stderr).toContain(message);
    expect((await readdir(sandbox.work)).filter((name) => /^(none|four).*Dockerfile/.test(name))).toEqual([]);
  });
});

describe('opmate list and graph', () => {
  it('lists packages, channels and bundles, with and without alpha', async () => {
    await sandbox.write({ 'in/all.json': widgetCatalog + catalogOf('gadget', [{ name: 'gadget.v1' }]) });
    const rows: Record<string, RegExp[]> = {
      packages: [/^NAME +DISPLAY NAME +DEFAULT CHANNEL *$/, /^gadget +stable *$/, /^widget +stable *$/],
      channels: [
        /^PACKAGE +CHANNEL +HEAD *$/,
        /^gadget +stable +gadget\.v1 *$/,
        /^widget +beta /,
        /^widget +stable /,
      ],
    };
    for (const noun of ['packages', 'channels', 'bundles']) {
      const plain = await sandbox.run(['list', noun, 'in']);
      expect(plain).toMatchObject({ code: 0, stderr: '' });
      expect(await sandbox.run(['alpha', 'list', noun, 'in'])).toEqual(plain);
      const lines = plain.stdout.trimEnd().split('\n');
      for (const [i, row] of (rows[noun] ?? []).entries()) expect(lines[i]).toMatch(row);
    }
    const gadget = await sandbox.run(['list', 'bundles', 'in', 'gadget']);
    expect(gadget.stdout.trimEnd().split('\n')).toHaveLength(2);
  });

  it('refuses an invalid catalog and a bundle', async () => {
    await sandbox.write({ 'cycle/all.json': caseOf('cycle').catalog });
    const invalid = await sandbox.run(['list', 'packages', 'cycle']);
    expect(invalid).toMatchObject({ code: 1, stdout: '' });
    expect(invalid.stderr).toContain('no channel head found in graph');
    const bundle = await sandbox.run(['list', 'packages', path.join(bundlesDirectory, 'microcks/0.3.0')]);
    expect(bundle).toMatchObject({ code: 1, stdout: '' });
    expect(bundle.stderr).toContain('cannot list non-index');
  });

  it('draws the upgrade graph, with and without alpha', async () => {
    await sandbox.write({ 'in/all.json': widgetCatalog });
    const plain = await sandbox.run(['graph', 'in']);
    expect(plain).toMatchObject({ code: 0, stderr: '' });
    expect(plain.stdout).toMatch(/^graph LR\n/);
    expect(plain.stdout).toContain('widget.v1.3.0');
    expect(await sandbox.run(['alpha', 'render-graph', 'in'])).toEqual(plain);
    const later = await sandbox.run(['graph', 'in', '--minimum-edge', 'widget.v1.2.0', '-p', 'widget']);
    expect(later.code).toBe(0);
    expect(later.stdout).not.toContain('widget.v1.0.0');
  });
});
