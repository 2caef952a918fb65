import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { type ExtractOptions, extractConfigMaps as extract } from '../../../src/bundle/config-map-extract.js';
import { readBundleConfigMaps } from '../../../src/bundle/config-map.js';
import { readManifests } from '../../../src/kube/manifests.js';
import { formatDiagnostic } from '../../../src/core/diagnostic.js';
import { type BundleFiles, readBundleDirectory } from '../../../src/bundle/read.js';
import { renderBundleFiles } from '../../../src/bundle/render.js';
import type { JsonObject } from '../../../src/document/json.js';
import { encodeYaml } from '../../../src/document/yaml.js';
import { encodeBlob } from '../../../src/model/encode.js';
import { bundlesDirectory } from '../../support/command-line.js';

async function extractConfigMaps(files: BundleFiles, given: ExtractOptions) {
  const { configMaps, ...others } = await extract(files, given);
  return { ...others, configMaps: configMaps.map((map) => map.load()) };
}

const prefix = 'operators.operatorframework.io.bundle';

function filesOf(texts: Record<string, string | Buffer>): BundleFiles {
  const files: BundleFiles = { manifests: [], metadata: [] };
  for (const [name, text] of Object.entries(texts)) {
    const [part, base] = name.split('/') as ['manifests' | 'metadata', string];
    files[part].push({ name: base, content: Buffer.from(text) });
  }
  return files;
}

type ConfigMapContent = ReturnType<typeof readBundleConfigMaps>;

function read(text: string, options: Parameters<typeof readBundleConfigMaps>[1] = {}): ConfigMapContent {
  const { manifests, findings } = readManifests([{ name: 'maps.yaml', content: Buffer.from(text) }], {
    prefix: '',
  });
  expect(findings).toEqual([]);
  return readBundleConfigMaps(manifests, options);
}

function readMaps(configMaps: readonly JsonObject[]): ConfigMapContent {
  return read(configMaps.map((map) => `---\n${encodeYaml(map)}`).join(''));
}

function textsOf({ files }: ConfigMapContent): Record<string, string> {
  return Object.fromEntries(files.map(({ path: name, content }) => [name, content.toString()]));
}

function toldBy({ findings }: Pick<ConfigMapContent, 'findings'>): string[] {
  return findings.map(formatDiagnostic);
}

const options = { name: 'widget', namespace: 'olm' };
const service = 'apiVersion: v1\nkind: Service\nmetadata:\n  name: widget\n';

describe('bundle/config-map', () => {
  describe.each(['skupper-operator/1.9.0', 'microcks', 'silicom-sts-operator'])('of %s', (name) => {
    const load = async (): Promise<BundleFiles> => {
      const { readdir } = await import('node:fs/promises');
      const root = path.join(bundlesDirectory, name);
      const version = name.includes('/') ? '' : ((await readdir(root))[0] as string);
      return readBundleDirectory(path.join(root, version));
    };
    it.each([
      ['as text', {}],
      ['compressed', { gzip: true }],
      ['in several ConfigMaps', { split: true, limit: 40_000, gzip: true }],
    ])('renders to the same blob, %s', async (_, more) => {
      const files = await load();
      const extracted = await extractConfigMaps(files, { ...options, ...more });
      expect([extracted.findings, extracted.warnings]).toEqual([[], []]);
      const content = readMaps(extracted.configMaps);
      expect([content.findings, content.warnings]).toEqual([[], []]);
      const again: BundleFiles = { manifests: [], metadata: [] };
      for (const file of content.files) {
        const [part, base] = file.path.split('/') as ['manifests' | 'metadata', string];
        again[part].push({ name: base, content: file.content });
      }
      const blob = (from: BundleFiles): string =>
        encodeBlob(
          { kind: 'bundle', blob: renderBundleFiles(from, { subject: 'b', image: 'quay.io/b:v1' }) },
          'json',
        );
      expect(blob(files).length).toBeGreaterThan(10_000);
      expect(blob(again)).toBe(blob(files));
    });
  });

  it('writes the keys and annotations of opm', async () => {
    const files = filesOf({
      'manifests/a b:c.yaml': service,
      'metadata/annotations.yaml': `annotations:\n  ${prefix}.package.v1: widget\n  ${prefix}.channels.v1: 4\n  other: x\n`,
      'metadata/dependencies.yaml': 'dependencies: []\n',
    });
    const { configMaps } = await extractConfigMaps(files, { ...options, sourceImage: 'quay.io/w:v1' });
    expect(configMaps).toEqual([
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: {
          name: 'widget',
          namespace: 'olm',
          annotations: {
            [`${prefix}.manifests.v1`]: '',
            [`${prefix}.mediatype.v1`]: '',
            [`${prefix}.metadata.v1`]: '',
            [`${prefix}.package.v1`]: 'widget',
            [`${prefix}.channels.v1`]: '4',
            [`${prefix}.channel.default.v1`]: '',
            'olm.sourceImage': 'quay.io/w:v1',
          },
        },
        immutable: true,
        data: { 'a-b-c.yaml': service, 'dependencies.yaml': 'dependencies: []\n' },
      },
    ]);
    expect(textsOf(readMaps(configMaps))).toEqual({
      'manifests/a-b-c.yaml': service,
      'metadata/annotations.yaml': `annotations:\n  ${prefix}.channels.v1: "4"\n  ${prefix}.package.v1: widget\n`,
      'metadata/dependencies.yaml': 'dependencies: []\n',
    });
  });

  it('restores every byte and path', async () => {
    const texts = {
      'manifests/annotations.yaml': 'annotations: {a: b}\n',
      'manifests/crlf.yaml': '\ufeffa: b\r\n\tc: \u0007 "x" \u2028\n  \n\n',
      'manifests/deps.yaml': 'dependencies: [x]\n',
      'manifests/empty.yaml': '',
      'metadata/object.yaml': service,
      'metadata/notes.txt': 'just words',
    };
    for (const more of [{}, { gzip: true }, { split: true, limit: 40 + service.length }]) {
      const { configMaps, findings } = await extractConfigMaps(filesOf(texts), { ...options, ...more });
      expect(findings).toEqual([]);
      expect(configMaps.length > 1).toBe('split' in more);
      expect(textsOf(readMaps(configMaps))).toEqual(texts);
    }
  });

  it('stores binary files in binaryData, and warns that OLM ignores them', async () => {
    const bytes = Buffer.from([0x61, 0xff, 0xfe]);
    const { configMaps, warnings } = await extractConfigMaps(filesOf({ 'manifests/a': bytes }), options);
    expect(configMaps[0]).toMatchObject({ binaryData: { a: bytes.toString('base64') } });
    expect(warnings.map(formatDiagnostic)).toEqual([
      'manifests/a: not UTF-8, and so in binaryData, where OLM does not look for it',
    ]);
    expect(readMaps(configMaps).files).toEqual([{ path: 'manifests/a', content: bytes }]);
  });

  it('reports the size of a bundle that does not fit, with hints', async () => {
    const files = filesOf({ 'manifests/a.yaml': 'a'.repeat(700), 'manifests/b.yaml': 'b'.repeat(600) });
    const { configMaps, findings } = await extractConfigMaps(files, { ...options, limit: 1000 });
    expect(configMaps).toEqual([]);
    expect(findings).toEqual([
      {
        severity: 'error',
        code: 'limit',
        problem: 'bundle files exceeded 1000 bytes limit: they have 1300, manifests/a.yaml alone 700',
        hint: expect.stringMatching(
          /^add options.gzip \(\d\d bytes in one ConfigMap\) or options.split \(2 ConfigMaps\)$/,
        ),
      },
    ]);
    const hint = async (more: Partial<ExtractOptions>): Promise<string | undefined> =>
      (await extractConfigMaps(files, { ...options, ...more })).findings[0]?.hint;
    expect(await hint({ limit: 40 })).toMatch(
      /^add options.gzip options.split \(\d\d bytes in 2 ConfigMaps\)$/,
    );
    expect(await hint({ limit: 40, gzip: true })).toBe('add options.split (2 ConfigMaps)');
    expect(await hint({ limit: 20, gzip: true })).toBe('reduce the size of the file: a file cannot be split');
    const large = await extractConfigMaps(files, { ...options, limit: 650, split: true });
    expect(large.findings).toEqual([
      {
        severity: 'error',
        code: 'limit',
        problem: '700 bytes, over the limit of 650 bytes for a ConfigMap',
        file: 'manifests/a.yaml',
        hint: 'compress the files with options.gzip',
      },
    ]);
  });

  it('splits a bundle in order of its files only as needed', async () => {
    const files = filesOf({
      'manifests/a': 'a'.repeat(50),
      'manifests/b': 'b'.repeat(60),
      'manifests/c': 'c'.repeat(40),
    });
    const split = await extractConfigMaps(files, { ...options, limit: 100, split: true });
    expect(
      split.configMaps.map(({ metadata, data, immutable }) => [metadata, Object.keys(data ?? {}), immutable]),
    ).toEqual([
      [
        { name: 'widget-1', namespace: 'olm', annotations: { 'opmate/parts': 'widget-1,widget-2' } },
        ['a'],
        true,
      ],
      [
        { name: 'widget-2', namespace: 'olm', annotations: { 'opmate/parts': 'widget-1,widget-2' } },
        ['b', 'c'],
        true,
      ],
    ]);
    const whole = await extractConfigMaps(files, { ...options, limit: 150, split: true });
    expect(whole.configMaps).toMatchObject([{ metadata: { name: 'widget' } }]);
    expect(toldBy(readMaps(split.configMaps.slice(1)))).toEqual([
      'maps.yaml:10:5: ConfigMap "widget-2": is one of 2 parts, and "widget-1" is missing',
    ]);
  });

  it('reports all faults of a bundle for a ConfigMap at once', async () => {
    const files = filesOf({
      'manifests/a b': 'x',
      'manifests/a:b': 'y',
      'manifests/..c': 'z',
      'metadata/a-b': 'w',
      'metadata/annotations.yaml': `annotations:\n  ${prefix}.package.v1: [x]\n`,
    });
    files.folders = ['more'];
    const extracted = await extractConfigMaps(files, { ...options, name: 'Widget', namespace: 'a.b' });
    expect(extracted.configMaps).toEqual([]);
    expect(toldBy(extracted).map((line) => line.replace(/(DNS-1123 \w+):.*/, '$1'))).toEqual([
      'ConfigMap "Widget": not a DNS-1123 subdomain',
      'namespace "a.b": not a DNS-1123 label',
      'manifests/more: is a directory',
      `metadata/annotations.yaml: ${prefix}.package.v1: expected a string, got a list`,
      'manifests/a:b: becomes the key "a-b" of the ConfigMap, as manifests/a b does',
      'manifests/..c: "..c" is not a valid ConfigMap key',
      'metadata/a-b: becomes the key "a-b" of the ConfigMap, as manifests/a b does',
    ]);
  });

  it('reads the ConfigMap of opm, in a list and as JSON, and warns that it is mutable', async () => {
    const map = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: 'up',
        annotations: { 'olm.contentEncoding': 'gzip+base64', [`${prefix}.package.v1`]: 'w' },
      },
      binaryData: {
        's.yaml': Buffer.from(gzipSync(service).toString('base64')).toString('base64'),
      },
    };
    const content = read(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [map] }));
    expect(content.findings).toEqual([]);
    expect(content.warnings.map(formatDiagnostic)).toEqual([
      expect.stringMatching(/^maps.yaml:1:43: ConfigMap "up": not immutable: its content may change/),
    ]);
    expect(textsOf(content)).toEqual({
      'manifests/s.yaml': service,
      'metadata/annotations.yaml': `annotations:\n  ${prefix}.package.v1: w\n`,
    });
  });

  it('reads a ConfigMap that kubectl created from files', () => {
    const annotations = `annotations:\n  ${prefix}.package.v1: w\n`;
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'k' }, immutable: true };
    const content = read(
      encodeYaml({ ...map, data: { 'annotations.yaml': annotations, 's.yaml': service } }),
    );
    expect(textsOf(content)).toEqual({
      'metadata/annotations.yaml': annotations,
      'manifests/s.yaml': service,
    });
  });

  it('reports all faults of ConfigMaps at once', () => {
    const head = (name: string): string =>
      `---\napiVersion: v1\nkind: ConfigMap\nimmutable: true\nmetadata:\n  name: ${name}\n`;
    const text =
      `${head('a')}  annotations: {olm.contentEncoding: gzip+base64, ${prefix}.package.v1: one}\n` +
      'data:\n  s.yaml: x\n  ../up: x\n  number: 1\nbinaryData:\n  s.yaml: eA==\n  bad: "%"\n  plain: eA==\n  zip: eHh4eA==\n' +
      `${head('b')}  annotations: {${prefix}.package.v1: two}\ndata:\n  s.yaml: z\n` +
      `---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n${head('c')}data: [x]\n`;
    expect(toldBy(read(text))).toEqual([
      'maps.yaml:28:1: Secret "s": not a ConfigMap',
      'maps.yaml:10:3: ConfigMap "a": "../up" is not a valid ConfigMap key',
      'maps.yaml:11:3: ConfigMap "a": data.number: expected a string, got the number 1',
      'maps.yaml:13:3: ConfigMap "a": "s.yaml" is in both data and binaryData',
      'maps.yaml:14:3: ConfigMap "a": binaryData.bad: invalid base64',
      'maps.yaml:15:3: ConfigMap "a": binaryData.plain: expected base64, as set in olm.contentEncoding',
      'maps.yaml:16:3: ConfigMap "a": binaryData.zip: not gzip, as olm.contentEncoding says it is',
      `maps.yaml:23:17: ConfigMap "b": is of another bundle than ConfigMap "a": its annotation ${prefix}.package.v1 differs`,
      'maps.yaml:25:3: ConfigMap "b": "s.yaml" becomes manifests/s.yaml, for which ConfigMap "a" (maps.yaml:2:1) has a file too',
      'maps.yaml:37:1: ConfigMap "c": data: expected an object, got a list',
    ]);
  });

  it('reports the version of a ConfigMap, and two of one name', () => {
    const map = (version: string): string =>
      `---\napiVersion: ${version}\nkind: ConfigMap\nimmutable: true\nmetadata: {name: a}\n`;
    expect(toldBy(read(map('v9')))).toEqual([
      'maps.yaml:2:1: ConfigMap "a": apiVersion: expected v1, got "v9"',
    ]);
    expect(toldBy(read(map('v1') + map('v1'), { places: [{ name: 'a' }] }))).toEqual([
      'maps.yaml:8:1: ConfigMap "a": duplicate, first defined in maps.yaml:3:1',
    ]);
  });

  it('writes ConfigMaps to their paths', () => {
    const map = (name: string, data: JsonObject): string =>
      `---\n${encodeYaml({ apiVersion: 'v1', kind: 'ConfigMap', immutable: true, metadata: { name }, data })}`;
    const text = map('a', { 'x.yaml': '1', manifests: '2' }) + map('b', { 'x.yaml': '3' }) + map('c', {});
    const placed = (...places: { name: string; path?: string }[]): ConfigMapContent => read(text, { places });
    expect(textsOf(placed({ name: 'a' }, { name: 'b', path: './sub/' }))).toEqual({
      'x.yaml': '1',
      manifests: '2',
      'sub/x.yaml': '3',
    });
    expect(toldBy(placed({ name: 'a' }, { name: 'b' }, { name: 'd' }))).toEqual([
      expect.stringMatching(
        /^maps.yaml:13:3: ConfigMap "b": "x.yaml" becomes x.yaml, for which ConfigMap "a"/,
      ),
      'ConfigMap "d": not found',
    ]);
    const through = [{ name: 'a' }, { name: 'b', path: 'manifests' }];
    expect(toldBy(placed(...through))).toHaveLength(1);
    expect(toldBy(placed(...through.reverse()))).toHaveLength(1);
    expect(() => placed({ name: 'a', path: '../up' })).toThrow('leads out of the root');
  });

  it('does not unpack more than the maximum size of a file', () => {
    const bomb = Buffer.from(gzipSync(Buffer.alloc(65 * 1024 * 1024)).toString('base64')).toString('base64');
    const metadata = { name: 'bomb', annotations: { 'olm.contentEncoding': 'gzip+base64' } };
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata, binaryData: { a: bomb } };
    expect(() => read(JSON.stringify(map))).toThrow(/ConfigMap "bomb": a: more than 67108864 bytes/);
  });
});
