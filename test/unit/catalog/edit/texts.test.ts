import fc from 'fast-check';
import { dump } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { encodeYaml, parseYaml } from '../../../../src/document/yaml.js';
import type { JsonObject } from '../../../../src/document/json.js';
import { changeYaml } from '../../../../src/catalog/edit/yaml-text.js';

function parsed(text: string): JsonObject | undefined {
  try {
    return parseYaml(text) as JsonObject;
  } catch {
    return undefined;
  }
}

describe('changeYaml', () => {
  const text = `---
# about all
name: stable # a name
entries: # the list
# about a
- name: a
  # why
  replaces: z # chain

# about b
- skips:
  - x
  name: b
# the end
package: widget
`;
  const change = (entries: JsonObject[], more: JsonObject = {}): string => {
    const before = parseYaml(text) as JsonObject;
    return changeYaml(text, before, { ...before, entries, ...more });
  };

  it('keeps comments and line ends of a document whose lines end with CR LF', () => {
    const before = parseYaml(text) as JsonObject;
    const after = {
      ...before,
      entries: [...(before['entries'] as JsonObject[]), { name: 'c', replaces: 'b' }],
    };
    const dos = text.replaceAll('\n', '\r\n');
    const expected = changeYaml(text, before, after);
    expect(expected).toContain('# why');
    expect(changeYaml(dos, before, after)).toBe(expected.replaceAll('\n', '\r\n'));
    // Where ends are mixed the blob is overwritten.
    expect(parseYaml(changeYaml(dos.replace('\r\n', '\n'), before, after))).toEqual(after);
  });

  it('changes a text where it stands', () => {
    expect(
      change(
        [
          { name: 'a', replaces: 'v' },
          { skips: ['x'], name: 'b' },
        ],
        { name: 'fast' },
      ),
    ).toBe(text.replace('name: stable', 'name: fast').replace('replaces: z', 'replaces: v'));
  });

  it('writes the lines of a field, keeping those around it', () => {
    expect(
      change([
        { name: 'a', replaces: 'z', skips: ['q'] },
        { skips: ['x'], name: 'b' },
      ]),
    ).toBe(text.replace('# chain\n', '# chain\n  skips:\n  - q\n'));
    expect(change([{ name: 'a' }, { skips: ['x'], name: 'b' }])).toBe(
      text.replace('  replaces: z # chain\n', ''),
    );
  });

  it('takes an item out with the comment above it', () => {
    expect(change([{ name: 'a', replaces: 'z' }])).toBe(
      text.replace('# about b\n- skips:\n  - x\n  name: b\n', ''),
    );
  });

  it('writes anew what it does not understand, and keeps the comments around it', () => {
    const flow = `# one\n{name: stable, entries: [{name: a}]}\n# two\n`;
    const before = parseYaml(flow) as JsonObject;
    expect(changeYaml(flow, before, { ...before, entries: [{ name: 'b' }] })).toBe(
      '# one\nentries:\n- name: b\nname: stable\n# two\n',
    );
  });

  it('gives what is wanted, whatever the document looks like', () => {
    const word = fc.oneof(
      fc.constantFrom(
        'a',
        'b',
        'c d',
        '# no comment',
        'e: f',
        '- g',
        'h\n# i\nj',
        "k'l",
        '"',
        'yes',
        '1.0',
        '',
      ),
      fc.string({ maxLength: 8 }),
    );
    const item = fc.record(
      {
        name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
        replaces: word,
        skips: fc.array(word, { maxLength: 3 }),
      },
      { requiredKeys: ['name'] },
    );
    const items = fc.uniqueArray(item, { selector: ({ name }) => name, maxLength: 5 });
    const document = fc.record({ name: word, entries: items });
    const style = fc.record({ flowLevel: fc.constantFrom(-1, 1, 2, 3), seqNoIndent: fc.boolean() });
    fc.assert(
      fc.property(document, document, style, fc.boolean(), (before, after, how, isCommented) => {
        let written = dump(before, how);
        if (isCommented) written = written.replace(/^ *- name/gm, '# above\n$&');
        // Not all that js-yaml writes is YAML 1.1.
        const old = parsed(written);
        fc.pre(old !== undefined);
        expect(parseYaml(changeYaml(written, old, after as JsonObject))).toEqual(
          parseYaml(encodeYaml(after as JsonObject)),
        );
      }),
      { numRuns: 500 },
    );
  });
});
