import { open, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { LineCounter, maxDocumentSize, readDocuments } from '../../../src/catalog/documents.js';
import { readMetas } from '../../../src/catalog/catalog.js';
import { OpmateError } from '../../../src/core/errors.js';
import { parseGoJson } from '../../../src/document/go-json.js';
import { directoryWith } from '../../support/temporary.js';
import { readVectors } from '../../support/vectors.js';

async function read(content: string | Buffer) {
  const directory = await directoryWith({ file: content });
  const documents = [];
  const handle = await open(path.join(directory, 'file'));
  try {
    for await (const document of readDocuments({ handle, label: 'file' })) documents.push(document);
  } finally {
    await handle.close();
  }
  return documents;
}

async function values(content: string | Buffer) {
  return (await read(content)).map((document) => document.value);
}

const blob = (schema: string): { schema: string } => ({ schema });

describe('catalog/documents', () => {
  it.each([
    ['pretty JSON objects', '{\n    "schema": "a"\n}\n{\n    "schema": "b"\n}\n'],
    ['JSON lines', '{"schema":"a"}\n{"schema":"b"}\n'],
    ['two objects on a line', '{"schema":"a"}{"schema":"b"}'],
    ['Windows line ends', '{\r\n  "schema": "a"\r\n}\r\n{"schema":"b"}\r\n'],
    ['a byte order mark', '\ufeff{"schema":"a"}\n{"schema":"b"}'],
    ['YAML documents', '---\nschema: a\n---\nschema: b\n'],
    ['YAML without a first separator, with a last one', 'schema: a\n--- # second\nschema: b\n---\n'],
    ['JSON that goes on as YAML', '{"schema":"a"}\n---\nschema: b\n'],
    ['YAML flow style that only looks like JSON', '{schema: a}\n---\nschema: b\n'],
  ])('reads %s', async (_what, content) => {
    expect(await values(content)).toEqual([blob('a'), blob('b')]);
  });

  it('reads every recorded stream of JSON and YAML as opm does', async () => {
    const vectors = readVectors<{ text: string; schemas?: string[] }>('catalog-streams.jsonl');
    expect(vectors).toHaveLength(220);
    const directory = await directoryWith({});
    for (const { text, schemas } of vectors) {
      const file = path.join(directory, 'file');
      await writeFile(file, text);
      const handle = await open(file);
      let read: string[] | undefined = [];
      try {
        for await (const { schema } of readMetas({ handle, label: 'file' }, {})) read.push(schema);
      } catch (error) {
        if (!(error instanceof OpmateError)) throw error;
        read = undefined;
      } finally {
        await handle.close();
      }
      expect({ text, schemas: read?.sort() }).toEqual({ text, schemas });
    }
  });

  it('goes on as YAML from the end of the last object, whatever value follows it', async () => {
    expect(await values('{"schema":"a"}\n"schema": b\n')).toEqual([blob('a'), blob('b')]);
    expect(await values('{"schema":"a"}\n  x: 1\n  schema: b\n')).toEqual([blob('a'), { x: 1, schema: 'b' }]);
    expect(await values('{"schema":"a"}\n\n---\nschema: b\n')).toEqual([blob('a'), null, blob('b')]);
    const far = `{"schema":"a"}${' '.repeat(5_000_000)}\n\n"schema": b\n`;
    expect(await values(far)).toEqual([blob('a'), blob('b')]);
  });

  it('reads nested objects whose braces stand at the start of lines', async () => {
    expect(await values('{\n"schema":"a",\n"x":{\n}\n}\n{\n"schema":"b"\n}')).toEqual([
      { schema: 'a', x: {} },
      blob('b'),
    ]);
  });

  it('refuses a document that is larger than the limit, with its line', async () => {
    const directory = await directoryWith({ file: '{"schema":"a"}\n{"schema":"b","x":"' });
    const file = path.join(directory, 'file');
    await truncate(file, maxDocumentSize + 24 * 1024 * 1024);
    const readAll = async (): Promise<void> => {
      const handle = await open(file);
      try {
        const label = 'file';
        for await (const { syntax } of readDocuments({ handle, label })) expect(syntax).toBe('json');
      } finally {
        await handle.close();
      }
    };
    await expect(readAll()).rejects.toMatchObject({
      message: `file: a document of more than ${maxDocumentSize} bytes`,
      line: 2,
    });
  });

  it('reads nothing from an empty file', async () => {
    expect(await values('')).toEqual([]);
  });

  it('gives a null document for white space or comments alone, and for two separators in a row', async () => {
    expect(await values(' \n\n')).toEqual([null]);
    expect(await values('# nothing\n')).toEqual([null]);
    expect(await values('---\n---\nschema: a\n')).toEqual([null, blob('a')]);
  });

  it('returns the place of each document, so that it can be read again', async () => {
    const content = Buffer.from('{"schema":"ä"}\n\n{\n "schema": "b"\n}\n');
    for (const { offset, length, value } of await read(content)) {
      expect(JSON.parse(content.subarray(offset, offset + length).toString())).toEqual(value);
    }
  });

  it('splits any objects as they were joined, whatever their form', async () => {
    const form = fc.constantFrom(undefined, 0, 1, 4);
    const item = fc.tuple(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })), form);
    const joint = fc.constantFrom('', '\n', ' ', '\r\n', '\n\n');
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(item, joint), { minLength: 1, maxLength: 6 }), async (items) => {
        const content = items
          .map(([[value, indent], after]) => JSON.stringify(value, null, indent) + after)
          .join('');
        const expected = items.map(([[value]]) => parseGoJson(JSON.stringify(value)));
        expect(await values(content)).toEqual(expected);
      }),
      { numRuns: 60 },
    );
  });

  it.each([
    ['{"schema":"a.b"', 'unexpected EOF', 1],
    ['{"a":1}\n{"b":2}\n{"c":}\n', "invalid character '}' looking for beginning of value", 3],
    ['schema: a\nx:\n\t- 1\n', 'error converting YAML to JSON: yaml: line ', 3],
    ['schema: a\n---\nx: 1\n--- y\n', 'invalid Yaml document separator: y', 4],
  ])('refuses %j with file and line', async (content, message, line) => {
    await expect(read(content)).rejects.toMatchObject({
      message: expect.stringContaining(message) as string,
      file: 'file',
      line,
    });
  });

  it('keeps documents whole that are larger than a chunk', async () => {
    const large = { schema: 'a', text: 'x'.repeat(9 * 1024 * 1024) };
    const content = `${JSON.stringify(large, null, 4)}\n${JSON.stringify(blob('b'))}\n`;
    const [first, second] = await values(content);
    expect((first as typeof large).text).toHaveLength(large.text.length);
    expect(second).toEqual(blob('b'));
  });
});

describe('catalog/documents: work grows with the file, not with its square', () => {
  it.each([
    ['objects with nothing between them', '{"schema":"a"}'],
    ['objects with a space between them', '{"schema":"a"} '],
    ['objects that open as pretty ones and do not end as such', '{\n"schema":"a"}'],
    ['objects that end a line with one that began before', '{"schema":"a",\n"x":1}'],
  ])('parses %s about once', async (_what, one) => {
    const content = one.repeat(3000);
    const parse = vi.spyOn(JSON, 'parse');
    try {
      expect(await read(content)).toHaveLength(3000);
      const parsed = parse.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
      expect(parsed).toBeLessThan(3 * content.length);
    } finally {
      parse.mockRestore();
    }
  });

  it('finds lines in any order by reading a file once, and then a block per place', async () => {
    const lines = 40_000;
    const directory = await directoryWith({ file: 'schema: a\n'.repeat(lines) });
    const handle = await open(path.join(directory, 'file'));
    let bytes = 0;
    const counted = {
      read: async (...[target, offset, length, position]: [Buffer, number, number, number]) => {
        const result = await handle.read(target, offset, length, position);
        bytes += result.bytesRead;
        return result;
      },
    } as unknown as typeof handle;
    try {
      const counter = new LineCounter('file');
      const wanted = [39_999, 0, 20_000, 39_998, 1, 12_345];
      for (const line of wanted) expect(await counter.lineOf(counted, line * 10)).toBe(line + 1);
      expect(await counter.lineOf(counted, lines * 10 + 5)).toBe(lines + 1);
      expect(bytes).toBeLessThan(lines * 10 + (wanted.length + 1) * 16 * 1024);
    } finally {
      await handle.close();
    }
  });

  it('lets others have their turn while a file is read', async () => {
    const directory = await directoryWith({ file: '{"schema":"a"}'.repeat(100_000) });
    const handle = await open(path.join(directory, 'file'));
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    try {
      let documents = 0;
      for await (const { syntax } of readDocuments({ handle, label: 'file' })) {
        if (syntax === 'json') documents++;
      }
      expect(documents).toBe(100_000);
      expect(turns).toBeGreaterThan(1);
    } finally {
      clearInterval(timer);
      await handle.close();
    }
  });
});
