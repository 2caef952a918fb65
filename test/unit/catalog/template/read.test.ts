import { open } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readTemplate } from '../../../../src/catalog/template/read.js';
import type { Template, TemplateType } from '../../../../src/catalog/template/template.js';
import { failureOf } from '../../../support/connect.js';
import { directoryWith } from '../../../support/temporary.js';

async function read(text: string, type?: TemplateType): Promise<Template> {
  const directory = await directoryWith({ t: text });
  const handle = await open(path.join(directory, 't'));
  try {
    const template = await readTemplate({ handle, label: 't' }, type);
    for (const warning of template.warnings)
      expect(await template.findLine(warning.path ?? [])).toBeGreaterThan(0);
    return template;
  } finally {
    await handle.close();
  }
}

describe('catalog/template/read', () => {
  it.each([
    ['schema: olm.template.basic\nentries: []\n', 'basic'],
    ['{"Schema": "olm.template.substitutes", "entries": []}', 'substitutes'],
    ['# by hand\nschema: olm.semver\nstable: {bundles: [{image: a/b:c}]}\n---\nignored: [\n', 'semver'],
  ])('tells the kind of a template by its schema (%#)', async (text, type) => {
    expect((await read(text)).type).toBe(type);
  });

  it.each([
    ['', 'auto-detecting template type: decoding template input: EOF'],
    ['a: 1\n', "auto-detecting template type: template input missing required 'schema' field"],
    ['# only\n---\nschema: olm.semver\n', "template input missing required 'schema' field"],
    ['schema: olm.foo\n', 'auto-detecting template type: unknown template schema: olm.foo'],
    ['schema: 5\n', 'json: cannot unmarshal number into Go struct field .schema of type string'],
    [
      'text\n',
      'json: cannot unmarshal string into Go value of type struct { Schema string "json:\\"schema\\"" }',
    ],
    [
      'schema: [\n',
      'auto-detecting template type: decoding template input: error converting YAML to JSON: yaml: ',
    ],
  ])('refuses what is no template (%#)', async (text, message) => {
    expect((await failureOf(read(text))).message).toContain(message);
  });

  it.each([
    ['basic', 'template has unknown schema ("olm.foo"), should be "olm.template.basic"'],
    [
      'semver',
      'render: unable to read file: readFile: input file has unknown schema, should be "olm.semver"',
    ],
    [
      'substitutes',
      'render: unable to parse template: template has unknown schema ("olm.foo"), should be "olm.template.substitutes"',
    ],
  ] as const)('refuses another kind than %s where that is wanted', async (type, message) => {
    const error = await failureOf(read('schema: olm.foo\n', type));
    expect(error).toMatchObject({ message: `rendering template: ${message}`, file: 't', line: 1 });
  });

  it.each([
    ['', { major: false, minor: true, preference: 'minor' }],
    ['generateMajorChannels: true\n', { major: true, minor: false, preference: 'major' }],
    [
      'generateMajorChannels: on\ngenerateMinorChannels: yes\ndefaultChannelTypePreference: major\n',
      { major: true, minor: true, preference: 'major' },
    ],
  ])('knows which channels a semver template wants (%#)', async (text, generate) => {
    expect(await read(`schema: olm.semver\n${text}`)).toMatchObject({ generate });
  });

  it.each([
    ['major', `schema attribute mismatch: DefaultChannelTypePreference set to 'major' doesn't make sense`],
    ['none', `unknown DefaultChannelTypePreference: "none"\nValid values are 'major' or 'minor'`],
  ])('refuses a preference that cannot be followed: %s', async (preference, message) => {
    const text = `schema: olm.semver\ndefaultChannelTypePreference: ${preference}\n`;
    const error = await failureOf(read(text));
    expect(error.message).toContain(`rendering template: render: unable to read file: ${message}`);
    expect(error).toMatchObject({ line: 2 });
  });

  it('takes numbers for texts in a semver template, as YAML tools of Go do', async () => {
    const text = 'schema: olm.semver\nfast: {bundles: [{image: 5.50}, {image: true}, {image: 12}, null]}\n';
    const template = await read(text);
    expect(template.type === 'semver' && template.bundles.map(({ image }) => image)).toEqual([
      '5.5',
      'true',
      '12',
      '',
    ]);
  });

  it('reports what has no effect in a basic template, and uses the last duplicate key', async () => {
    const entry = (name: string): string => `- schema: olm.package\n  name: ${name}\n`;
    const text = `schema: olm.template.basic\nentries:\n${entry('a')}entries:\n${entry('b')}foo: 1\nEntries: []\n`;
    const template = await read(text);
    expect(template.warnings.map(({ problem }) => problem)).toEqual([
      'unknown key "foo" has no effect',
      'unknown key "Entries" has no effect',
    ]);
    expect(template.type === 'basic' && template.entries.map(({ blob }) => blob)).toMatchObject([
      { kind: 'package', blob: { name: 'b' } },
    ]);
  });
});
