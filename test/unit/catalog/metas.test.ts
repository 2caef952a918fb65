import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Assembly } from '../../../src/catalog/assemble.js';
import { DirectoryCatalog } from '../../../src/catalog/catalog.js';
import type { LinkOptions } from '../../../src/files/directory-root.js';

// What `opm` (v1.73.0) says of the same files was recorded once by running it.

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'opmate-metas-'));
});

afterEach(async () => {
  await rm(directory, { recursive: true });
});

async function render(
  content: string | Buffer,
  format: 'json' | 'yaml' = 'json',
  links: LinkOptions = {},
): Promise<string> {
  await writeFile(path.join(directory, 'catalog'), content);
  const assembly = new Assembly({ format, migrationLevel: 'none', temporaryDirectory: directory });
  const catalog = new DirectoryCatalog(directory, 'c', links);
  try {
    for await (const meta of catalog.metas()) await assembly.add(catalog, meta);
    let text = '';
    for await (const piece of assembly.write()) text += piece.toString();
    return text;
  } finally {
    await catalog.close();
    await assembly.close();
  }
}

const yaml = 'error unmarshaling JSON: while decoding JSON: ';

describe('catalog/metas', () => {
  it.each([
    [
      '{"schema":{"b":1,"a":["x",null,true]}}',
      'expected value for key "schema" to be a string, got map[%!t(string=a):[%!t(string=x) <nil> true] ' +
        '%!t(string=b):%!t(float64=1)]: map[a:[x <nil> true] b:1]',
    ],
    ['{"schema":null}', 'expected value for key "schema" to be a string, got %!t(<nil>): <nil>'],
    ['schema: yes\n', `${yaml}expected value for key "schema" to be a string, got true: true`],
    ['{"schema":"a","Name":1}', 'expected value for key "Name" to be a string, got %!t(float64=1): 1'],
    ['{"schema":-0.0}', 'expected value for key "schema" to be a string, got %!t(float64=-0): -0'],
    [
      '{"schema":1234567}',
      'expected value for key "schema" to be a string, got %!t(float64=1.234567e+06): 1.234567e+06',
    ],
  ])('says what stands where a name should: %s', async (content, message) => {
    await expect(render(content)).rejects.toMatchObject({ message, line: 1 });
  });

  it.each([
    ['{"name":1,"Name":"a"}', 'duplicate keys for key "name": [Name name]'],
    ['{"schema":"a","straße":1,"STRASSE":2}', 'duplicate keys for key "strasse": [STRASSE straße]'],
    ['{"schema":"a","ı":1,"i":2,"I":3}', 'duplicate keys for key "i": [I i]'],
  ])('refuses keys that are one when case is folded: %s', async (content, message) => {
    await expect(render(content)).rejects.toMatchObject({ message });
  });

  it.each([
    ['{"schema": "a.b"} xyz', "json: offset 19: invalid character 'x' looking for beginning of value"],
    ['{"schema": 0x10}\n', "json: offset 13: invalid character 'x' after object key:value pair"],
  ])('reports the JSON fault of what is a blob in no notation: %s', async (content, message) => {
    await expect(render(content)).rejects.toMatchObject({ message, line: 1 });
  });

  it('reports the missing schema of a file that turned out to be YAML', async () => {
    await expect(render('{"x": a}\n')).rejects.toMatchObject({
      message: 'object \'{"x":"a"}\n\' is missing root schema field',
    });
  });

  it.each([
    [
      '{"schema":"olm.channel","package":"p","name":"c","entries":[{"skips":1,"skipRange":2}]}',
      'parse channel: json: cannot unmarshal number into Go struct field ChannelEntry.entries.skipRange of type string',
    ],
    [
      '{"schema":"olm.channel","package":"p","name":"c","entries":[1]}',
      'parse channel: json: cannot unmarshal number into Go struct field Channel.entries of type declcfg.ChannelEntry',
    ],
    [
      '{"schema":"olm.deprecations","package":"p","entries":["a"]}',
      'parse deprecation: json: cannot unmarshal string into Go struct field ' +
        'Deprecation.entries of type declcfg.DeprecationEntry',
    ],
    [
      '{"schema":"olm.package","icon":{"base64data":{}}}',
      'parse package: json: cannot unmarshal object into Go struct field Icon.icon.base64data of type []uint8',
    ],
    [
      '{"schema":"olm.bundle","properties":[true]}',
      'parse bundle: json: cannot unmarshal bool into Go struct field Bundle.properties of type property.Property',
    ],
  ])('names the field and the type that a value does not fit: %s', async (content, message) => {
    await expect(render(content)).rejects.toMatchObject({ message });
  });

  it('reports bundle objects in YAML that are not UTF-8', async () => {
    const data = Buffer.from([0x61, 0x3a, 0x20, 0xff]).toString('base64');
    const property = { type: 'olm.bundle.object', value: { data } };
    const bundle = { schema: 'olm.bundle', name: 'b', package: 'p', properties: [property] };
    await expect(render(JSON.stringify(bundle))).rejects.toMatchObject({
      message:
        'read bundle objects: package "p", bundle "b": convert bundle object property at index 0 to JSON: ' +
        'yaml: invalid leading UTF-8 octet',
    });
  });

  it.each([
    ['schema: a\nx: |\n  b', 'x: |\n  b\n'],
    ['schema: a\nx: |-\n  b', 'x: b\n'],
    ['schema: a\nx: b', 'x: b\n'],
  ])('reads a last line without a line break as one with it: %j', async (content, lines) => {
    expect(await render(content, 'yaml')).toBe(`---\nschema: a\n${lines}`);
  });

  it('keeps an icon without data apart from one with empty data', async () => {
    const icon = (value: unknown): string =>
      JSON.stringify({ schema: 'olm.package', name: 'p', icon: value });
    expect(await render(icon({}))).toContain('"base64data": null,');
    expect(await render(icon({ base64data: null }), 'yaml')).toContain('base64data: null\n');
    expect(await render(icon({ base64data: '' }))).toContain('"base64data": "",');
    expect(await render(icon(null))).not.toContain('icon');
  });

  it.runIf(process.platform === 'linux').each([
    ['a disk that fails', '/proc/self/mem', 'IO', 'c/link: input/output error'],
    ['a directory', '/proc', 'IO', 'c/link: is a directory'],
    ['nothing', '/proc/missing', 'NOT_FOUND', 'c/link: no such file or directory'],
  ])('names the file and the reason when a link leads to %s', async (_what, target, code, message) => {
    await symlink(target, path.join(directory, 'link'));
    const followed = render('{"schema":"olm.package","name":"p"}', 'json', { followLinks: true });
    await expect(followed).rejects.toMatchObject({
      code,
      message,
      file: 'c/link',
    });
  });

  it('does not wait for who might write into a pipe', async () => {
    execFileSync('mkfifo', [path.join(directory, 'pipe')]);
    await expect(render('{"schema":"olm.package","name":"p"}')).rejects.toMatchObject({
      code: 'IO',
      message: 'c/pipe: not an ordinary file',
      file: 'c/pipe',
    });
  });

  it('refuses a blob whose file has become shorter since', async () => {
    const file = path.join(directory, 'catalog');
    await writeFile(file, '{"schema":"x","name":"n"}');
    const catalog = new DirectoryCatalog(directory, 'c');
    for await (const { origin } of catalog.metas()) {
      await catalog.read(origin);
      await writeFile(file, '{}');
      for (const again of [catalog.read(origin), catalog.readText(origin)]) {
        await expect(again).rejects.toMatchObject({
          code: 'IO',
          message: 'c/catalog: changed by another process while reading',
        });
      }
    }
    await catalog.close();
  });

  it('shows no more of a blob without schema than it takes to know it', async () => {
    const text = JSON.stringify({ x: 'a'.repeat(5000) });
    await expect(render(text)).rejects.toMatchObject({
      message: `object '${text.slice(0, 2048)}…' is missing root schema field`,
    });
  });

  it.each([
    [
      'a Kubernetes manifest',
      'all.yaml',
      'apiVersion: v1\nkind: Service\n',
      /^specify each bundle directory itself: this directory contains bundles/,
    ],
    [
      'a file of a bundle',
      'metadata/annotations.yaml',
      'annotations: {}\n',
      /^specify each bundle directory itself: this directory contains bundles/,
    ],
    ['any other file', 'values.yaml', 'a: 1\n', /^add a schema, or list files/],
  ])('says what to do about %s in a catalog', async (_what, name, content, hint) => {
    const file = path.join(directory, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content);
    await expect(render('{"schema":"x"}')).rejects.toMatchObject({
      file: `c/${name}`,
      hint: expect.stringMatching(hint) as string,
    });
  });
});
