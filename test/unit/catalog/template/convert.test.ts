import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { toMeta } from '../../../../src/catalog/meta.js';
import { type ConvertedType, TemplateConversion } from '../../../../src/catalog/template/convert.js';
import type { JsonObject } from '../../../../src/document/json.js';
import type { CatalogFormat } from '../../../../src/model/encode.js';

async function convert(blobs: JsonObject[], type: ConvertedType, format: CatalogFormat): Promise<string> {
  const conversion = new TemplateConversion({ type, format, temporaryDirectory: tmpdir() });
  try {
    for (const value of blobs) {
      await conversion.add(toMeta(value, 'json', { file: 'a', offset: 0, length: 0, syntax: 'json' }));
    }
    let text = '';
    for await (const piece of conversion.write()) text += piece.toString();
    return text;
  } finally {
    await conversion.close();
  }
}

const blobs: JsonObject[] = [
  { schema: 'olm.bundle', name: 'w.v1', package: 'w', image: 'r/w:1', properties: [] },
  { schema: 'custom', z: [1.5, { b: '<x>', a: null }], a: true },
];

describe('catalog/template/convert', () => {
  it('leaves schema and image of the bundles of a basic template, and sorts the keys of all else', async () => {
    expect(await convert(blobs, 'basic', 'json')).toBe(`{
    "schema": "olm.template.basic",
    "entries": [
        {
            "schema": "olm.bundle",
            "image": "r/w:1"
        },
        {
            "a": true,
            "schema": "custom",
            "z": [
                1.5,
                {
                    "a": null,
                    "b": "\\u003cx\\u003e"
                }
            ]
        }
    ]
}
`);
  });

  it('keeps whole bundles in a substitutes template, in YAML with a blank line at the end', async () => {
    expect(await convert(blobs, 'substitutes', 'yaml')).toBe(`---
entries:
- image: r/w:1
  name: w.v1
  package: w
  properties: []
  schema: olm.bundle
- a: true
  schema: custom
  z:
  - 1.5
  - a: null
    b: <x>
schema: olm.template.substitutes
substitutions: []

`);
  });

  it.each([
    ['basic', 'json', '{\n    "schema": "olm.template.basic",\n    "entries": null\n}\n'],
    ['substitutes', 'yaml', '---\nentries: null\nschema: olm.template.substitutes\nsubstitutions: []\n\n'],
  ] as const)('writes a template of nothing as %s in %s', async (type, format, expected) => {
    expect(await convert([], type, format)).toBe(expected);
  });
});
