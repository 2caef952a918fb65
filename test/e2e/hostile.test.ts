import { chmod, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { imageLabels } from '../../src/model/image-labels.js';
import { isExecutable, useSandbox } from '../support/command-line.js';
import { caseOf, catalogOf, widgetCatalog } from './catalogs.js';
import { type ImageContent, makeCatalogImage, makeImage, storeImage } from './images.js';

const sandbox = useSandbox();
const at = (...parts: string[]): string => path.join(sandbox.work, ...parts);
let images = 0;

/** Stores an image in a layout of its own and returns the reference. */
async function stored(content: ImageContent): Promise<string> {
  const name = `image-${images++}`;
  await storeImage(at(name), 'v1', await makeImage(content));
  return `oci:${name}:v1`;
}

/** Runs a command that must fail in an orderly way; returns what it said. */
async function failureOf(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await sandbox.run(args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).not.toMatch(/internal error|^ +at .*:\d+:\d+/m);
  return stderr;
}

afterEach(async () => {
  expect(await sandbox.leftovers()).toEqual([]);
});

describe('images with wrong contents', () => {
  const catalog = { 'configs/all.json': widgetCatalog, 'etc/passwd': 'root' };

  it.each([
    ['../..', 'a path outside the image'],
    ['/configs/../../etc', 'a path outside the image'],
    [
      '/nowhere',
      'label operators.operatorframework.io.index.configs.v1: /nowhere does not exist in the image',
    ],
    [
      '/configs/all.json',
      'label operators.operatorframework.io.index.configs.v1: /configs/all.json is not a directory',
    ],
  ])('refuses a catalog label of %s', async (label, message) => {
    const reference = await stored({ files: catalog, labels: { [imageLabels.configs]: label } });
    for (const command of ['render', 'validate'])
      expect(await failureOf([command, reference])).toContain(message);
  });

  it.each(['/', '', 'configs', '//configs//', './configs/.'])(
    'takes a catalog label of %j',
    async (label) => {
      const reference = await stored({
        files: { 'configs/all.json': widgetCatalog },
        labels: { [imageLabels.configs]: label },
      });
      expect(await sandbox.run(['validate', reference])).toEqual({ code: 0, stdout: '', stderr: '' });
    },
  );

  it('names the expected labels and the existing ones', async () => {
    const none = await failureOf(['render', await stored({ files: catalog })]);
    expect(none).toContain('image has no labels');
    expect(none).toContain(imageLabels.configs);
    expect(none).toContain(imageLabels.bundlePackage);
    const other = await failureOf([
      'render',
      await stored({ files: catalog, labels: { maintainer: 'somebody' } }),
    ]);
    expect(other).toContain('maintainer=somebody');
  });

  it('reports missing parts of a bundle image', async () => {
    const labels = { [imageLabels.bundlePackage]: 'widget' };
    const withoutAnnotations = await stored({ files: { 'manifests/csv.yaml': 'kind: x\n' }, labels });
    expect(await failureOf(['render', withoutAnnotations])).toMatch(/annotations|metadata/);
    expect(await failureOf(['render', await stored({ labels })])).toMatch(/annotations|metadata|manifests/);
  });

  it('detects sqlite indexes, and reports faults of damaged ones', async () => {
    const reference = await stored({
      files: { 'database/index.db': 'SQLite format 3\0' },
      labels: { [imageLabels.database]: '/database/index.db' },
    });
    await sandbox.write({
      'index.db': Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(4096)]),
    });
    for (const source of [reference, 'index.db']) {
      for (const command of [['render'], ['list', 'packages']]) {
        const text = await failureOf([...command, source]);
        expect(text).toMatch(/not a sqlite database|damaged|truncated/);
        expect(text).toContain(source);
      }
    }
  });

  it('confines layers: links out of the root, parent paths, absolute names', async () => {
    const outside = path.join(sandbox.home, 'outside');
    await mkdir(outside, { recursive: true });
    await writeFile(path.join(outside, 'all.json'), '{"schema":"olm.package","name":"stolen"}');
    const labels = { [imageLabels.configs]: '/configs' };
    const attacks: ImageContent['raw'][] = [
      [[{ name: 'configs', flag: '2', linkName: outside }]],
      [
        [{ name: 'configs', flag: '2', linkName: outside }],
        [{ name: 'configs/written.json', content: '{}' }],
      ],
      [[{ name: 'configs/../../../escaped.json', content: '{}' }]],
      [[{ name: `${outside}/absolute.json`, content: '{}' }]],
      [[{ name: 'configs/all.json', flag: '1', linkName: `${outside}/all.json` }]],
      [
        [
          { name: 'configs/a', flag: '2', linkName: 'b' },
          { name: 'configs/b', flag: '2', linkName: 'a' },
        ],
      ],
    ];
    for (const raw of attacks) {
      const { stdout, stderr } = await sandbox.run(['render', await stored({ raw: raw ?? [], labels })]);
      expect(stdout + stderr).not.toContain('stolen');
      expect(stderr).not.toMatch(/internal error/);
      expect(await readdir(outside)).toEqual(['all.json']);
      // The executable unpacks its native module below the home directory.
      const written = (await readdir(sandbox.home)).filter((name) => !isExecutable || name !== '.cache');
      expect(written).toEqual(['outside']);
    }
  });
});

describe('bombs', () => {
  it('stops at --max-unpacked-size, with limit and flag', async () => {
    const zeros = JSON.stringify({ schema: 'example.zeros', zeros: '0'.repeat(4 * 1024 * 1024) });
    const image = await makeCatalogImage({ 'all.json': widgetCatalog, 'zeros.json': zeros });
    await storeImage(at('bomb'), 'v1', image);
    const text = await failureOf(['render', 'oci:bomb:v1', '--max-unpacked-size', '1M']);
    expect(text).toContain('unpacks to more than 1 MiB');
    expect(text).toContain('--max-unpacked-size');
    const { code } = await sandbox.run(['render', 'oci:bomb:v1', '--max-unpacked-size', '8M']);
    expect(code).toBe(0);
  });

  it('stops at --max-entries and --max-ratio', async () => {
    const files = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`${i}/all.json`, '']));
    await storeImage(at('many'), 'v1', await makeCatalogImage(files));
    expect(await failureOf(['render', 'oci:many:v1', '--max-entries', '20'])).toContain('--max-entries');
    const dense = await makeCatalogImage({ 'zeros.json': ' '.repeat(80 * 1024 * 1024) });
    await storeImage(at('dense'), 'v1', dense);
    expect(await failureOf(['render', 'oci:dense:v1'])).toContain('--max-ratio');
  });

  it('limits the expansion of YAML aliases', async () => {
    const names = 'abcdefghijklmnop'.split('');
    const lines = names.map((name, i) => {
      const previous = names[i - 1];
      return `${name}: &${name} [${Array(10)
        .fill(previous === undefined ? 'x' : `*${previous}`)
        .join(', ')}]`;
    });
    await sandbox.write({ 'aliases/all.yaml': `schema: olm.package\nname: x\n${lines.join('\n')}\n` });
    for (const command of ['validate', 'render'])
      expect(await failureOf([command, 'aliases'])).toContain('all.yaml');
  });

  it.each([
    ['json', `{"schema":"x","deep":${'['.repeat(10_000)}${']'.repeat(10_000)}}`],
    ['json', `{"schema":"x","deep":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`],
    ['yaml', `schema: x\ndeep: ${'['.repeat(10_000)}${']'.repeat(10_000)}\n`],
    [
      'yaml',
      `schema: x\ndeep:\n${Array.from({ length: 3000 }, (_, i) => `${' '.repeat(i + 1)}a:\n`).join('')}`,
    ],
  ])('survives deep nesting (%s)', async (format, text) => {
    await sandbox.write({ [`deep/all.json`]: '', [`deep/all.yaml`]: '', [`deep/all.${format}`]: text });
    for (const command of ['validate', 'render']) {
      const { code, stderr } = await sandbox.run([command, 'deep']);
      expect([0, 1]).toContain(code);
      expect(stderr).not.toMatch(/internal error|stack size/);
      if (code === 1) expect(stderr).toContain(`all.${format}`);
    }
  });
});

describe('graphs', () => {
  const namesOf = (count: number): string[] => Array.from({ length: count }, (_, i) => `long.v${i}`);

  it('validates a chain of 200,000 entries', async () => {
    const names = namesOf(200_000);
    const entries = names.map((name, i) => (i === 0 ? { name } : { name, replaces: names[i - 1] as string }));
    await sandbox.write({ 'chain/all.json': catalogOf('long', entries) });
    // A slow machine shows progress.
    const { code, stdout, stderr } = await sandbox.run(['validate', 'chain']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toMatch(/^(?:info: read .*\n)*$/);
  });

  it('finds a cycle of 50,000 entries', async () => {
    const names = namesOf(50_000);
    const entries = names.map((name, i) => ({ name, replaces: names.at(i - 1) as string }));
    await sandbox.write({ 'ring/all.json': catalogOf('long', entries) });
    const { code, stderr } = await sandbox.run(['validate', 'ring']);
    expect(code).toBe(1);
    expect(stderr).toContain('no channel head found in graph');
  });

  it.each(['self-replace', 'half-cycle', 'cycle', 'two-heads', 'entry-unknown-bundle', 'channel-empty'])(
    'draws and lists %s, or says why not',
    async (name) => {
      await sandbox.write({ [`${name}/all.json`]: caseOf(name).catalog });
      for (const command of [['graph'], ['list', 'channels']]) {
        const { code, stdout, stderr } = await sandbox.run([...command, name]);
        expect([0, 1]).toContain(code);
        expect(stderr).not.toMatch(/internal error/);
        expect((code === 0 ? stdout : stderr).length).toBeGreaterThan(0);
      }
    },
  );
});

describe('files of a catalog', () => {
  it('preserves unknown schemas, unusual names and all characters', async () => {
    const text = 'nul \u0000, <&>, \u2028, 𝄞, "quotes"\\ and \u007f';
    const blob = {
      schema: 'example.com/odd',
      package: '',
      name: '../..\u0000/x',
      text,
      big: '@@',
      list: [null, 1.5],
    };
    await sandbox.write({ 'odd/all.json': JSON.stringify(blob).replace('"@@"', '12345678901234567890') });
    const { code, stdout } = await sandbox.run(['render', 'odd']);
    expect(code).toBe(0);
    expect(stdout).toContain('12345678901234567890');
    expect(JSON.parse(stdout)).toMatchObject({ name: '../..\u0000/x', text, list: [null, 1.5] });
    const yaml = await sandbox.run(['render', 'odd', '-o', 'yaml']);
    await sandbox.write({ 'odd-yaml/all.yaml': yaml.stdout });
    expect((await sandbox.run(['render', 'odd-yaml'])).stdout).toBe(stdout);
  });

  it.each([
    ['null', 'null'],
    ['a number', '17'],
    ['a list', '[{"schema":"olm.package","name":"x"}]'],
    ['a blob without schema', '{"name":"x"}'],
    ['half a blob', '{"schema":"olm.package","name":"x"'],
    ['binary', Buffer.from('00010203fffefdfc', 'hex')],
    ['tabs in YAML', 'schema: olm.package\n\tname: x\n'],
    ['a catalog in UTF-16', Buffer.from('\uFEFF{"schema":"olm.package"}', 'utf16le')],
  ])('refuses %s with the name of the file', async (_what, content) => {
    await sandbox.write({ 'refused/sub/all.yaml': content });
    for (const command of ['validate', 'render']) {
      expect(await failureOf([command, 'refused'])).toContain('refused/sub/all.yaml');
    }
  });

  it('reads CRLF, byte order marks, and files without a final newline', async () => {
    await sandbox.write({ 'plain/all.json': widgetCatalog });
    const expected = await sandbox.run(['render', 'plain']);
    const yaml = (await sandbox.run(['render', 'plain', '-o', 'yaml'])).stdout;
    await sandbox.write({
      'bom/all.json': `\uFEFF${widgetCatalog}`,
      'crlf/all.yaml': yaml.replaceAll('\n', '\r\n'),
      'cut/all.yaml': yaml.trimEnd(),
      'glued/all.json': widgetCatalog.replaceAll('\n', ''),
    });
    for (const name of ['bom', 'crlf', 'cut', 'glued'])
      expect(await sandbox.run(['render', name])).toEqual(expected);
  });

  it('excludes files in .indexignore', async () => {
    await sandbox.write({
      'ignoring/all.json': widgetCatalog,
      'ignoring/broken.json': '{',
      'ignoring/docs/readme.md': '# not a catalog',
      'ignoring/docs/keep.json': '{"schema":"example.kept"}',
      'ignoring/.indexignore': '# comment\nbroken.json\n*.md\n',
    });
    const { code, stdout, stderr } = await sandbox.run(['render', 'ignoring']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('example.kept');
    expect(stdout).not.toContain('broken');
  });

  it('terminates for linked directories and files, including cycles', async () => {
    await sandbox.write({
      'linked/all.json': widgetCatalog,
      'elsewhere/more.json': '{"schema":"example.more"}',
    });
    await symlink('..', at('linked/up'));
    await symlink('.', at('linked/self'));
    await symlink('../elsewhere', at('linked/other'));
    for (const command of ['render', 'validate']) {
      const { code, stderr } = await sandbox.run([command, 'linked']);
      expect([0, 1]).toContain(code);
      expect(stderr).not.toMatch(/internal error|ELOOP/);
    }
    await symlink('../elsewhere/more.json', at('linked/more.json'));
    await symlink('nowhere.json', at('linked/dangling.json'));
    const { code, stderr } = await sandbox.run(['validate', 'linked']);
    expect(code).toBe(1);
    expect(stderr).toContain('dangling.json');
  });

  // Nothing is forbidden to root.
  it.skipIf(process.getuid?.() === 0)('names a file without read permission', async () => {
    await sandbox.write({ 'secret/all.json': widgetCatalog });
    await chmod(at('secret/all.json'), 0);
    expect(await failureOf(['validate', 'secret'])).toContain('secret/all.json: permission denied');
  });
});

describe('references', () => {
  it.each([
    'UPPER/case:v1',
    'oci:',
    'oci-archive:nowhere.tar',
    'docker-archive:nowhere.tar',
    'docker://',
    'https://quay.io/ns/name:v1',
    '[::1]:5000/x',
    'name@sha256:abc',
    'name@sha256:../../../etc/passwd',
    `${'x'.repeat(300)}:v1`,
    '../x:v1',
    '\u0001:v1',
    ' ',
  ])('refuses %j in one line with a reason', async (reference) => {
    const text = await failureOf(['render', reference]);
    expect(text.split('\n').filter((line) => line !== '' && !line.startsWith('hint: '))).toHaveLength(1);
  });

  it.each([[['render']], [['validate']], [['list', 'bundles']], [['graph']], [['oci', 'inspect']]])(
    '%j does not repeat a password that was written into a reference',
    async (command) => {
      const text = await failureOf([...command, 'user:secret@registry.test/x:v1']);
      expect(text).toContain('***@registry.test/x:v1');
      expect(text).not.toContain('secret');
    },
  );

  it('refuses invalid archives', async () => {
    await sandbox.write({ 'noise.tar': Buffer.alloc(10_000, 7), 'empty.tar': '', 'text.tar': widgetCatalog });
    for (const file of ['noise.tar', 'empty.tar', 'text.tar']) {
      for (const transport of ['oci-archive', 'docker-archive']) {
        expect(await failureOf(['render', `${transport}:${file}`])).toContain(file);
      }
    }
  });
});
