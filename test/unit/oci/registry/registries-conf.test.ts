import { writeFile } from 'node:fs/promises';
import fc from 'fast-check';
import { OpmateError } from '../../../../src/core/errors.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type ResolvedLocation,
  parseRegistriesConf,
  type RegistriesConfOptions,
  readRegistriesConf,
  resolveLocations,
} from '../../../../src/oci/registry/registries-conf.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';

let bench: Workbench;

beforeEach(async () => {
  bench = await openWorkbench();
});

afterEach(() => bench.close());

function read(options: Partial<RegistriesConfOptions> = {}): ReturnType<typeof readRegistriesConf> {
  const systemDirectory = `${bench.home}/etc`;
  return readRegistriesConf({ environment: {}, homeDirectory: bench.home, systemDirectory, ...options });
}

async function resolve(
  conf: string,
  name: string,
  options: Parameters<typeof resolveLocations>[3] = {},
): Promise<string[]> {
  const rules = await parseRegistriesConf(conf, 'test.conf');
  const slash = name.indexOf('/');
  return resolveLocations(rules, name.slice(0, slash), name.slice(slash + 1), options).map(
    ({ registry, repository, insecure, isMirror }) =>
      `${isMirror ? 'mirror ' : ''}${insecure ? 'insecure ' : ''}${registry} ${repository}`,
  );
}

describe('oci/registries-conf: files', () => {
  const table = (location: string, more = ''): string => `[[registry]]\nlocation = "${location}"\n${more}\n`;
  const prefixes = async (options: Partial<RegistriesConfOptions> = {}): Promise<string[]> =>
    (await read(options)).map((rule) => rule.prefix);

  it('has no rules where there is no file', async () => {
    expect(await prefixes()).toEqual([]);
  });

  it('reads the named file, else that of the home directory, else that of the system', async () => {
    await bench.file('etc/containers/registries.conf', table('system.io'));
    expect(await prefixes()).toEqual(['system.io']);
    await bench.file('.config/containers/registries.conf', table('home.io'));
    expect(await prefixes()).toEqual(['home.io']);
    const named = await bench.file('named.conf', table('named.io'));
    expect(await prefixes({ environment: { CONTAINERS_REGISTRIES_CONF: named } })).toEqual(['named.io']);
    expect(await prefixes({ registriesConfFile: named })).toEqual(['named.io']);
  });

  it('fails when the named file is missing', async () => {
    const failure = await failureOf(read({ environment: { CONTAINERS_REGISTRIES_CONF: '/nowhere/x.conf' } }));
    expect(failure.message).toBe('/nowhere/x.conf: no such file or directory');
  });

  it('adds *.conf of registries.conf.d by name, the later replacing the earlier', async () => {
    await bench.file('etc/containers/registries.conf', table('a.io') + table('b.io'));
    await bench.file('etc/containers/registries.conf.d/20.conf', table('b.io', 'insecure = true'));
    await bench.file('etc/containers/registries.conf.d/10.conf', table('b.io', 'blocked = true'));
    await bench.file('etc/containers/registries.conf.d/README.md', 'not toml');
    await bench.file('.config/containers/registries.conf.d/x.conf', table('c.io'));
    const rules = await read();
    expect(rules.map((rule) => rule.prefix)).toEqual(['a.io', 'b.io', 'c.io']);
    expect(rules[1]).toMatchObject({ insecure: true, blocked: false });
  });

  it('names the line of what is not UTF-8', async () => {
    const path = await bench.file('etc/containers/registries.conf', '');
    await writeFile(path, Buffer.from('# a\n# \xff\n', 'latin1'));
    expect((await failureOf(read())).message).toBe(`${path}:2: invalid UTF-8`);
  });

  it('names file and line of what does not parse', async () => {
    const path = await bench.file(
      'etc/containers/registries.conf',
      'unqualified-search-registries = []\n[[registry\n',
    );
    const failure = await failureOf(read());
    expect(failure).toMatchObject({ code: 'SYNTAX', file: path, line: 2 });
    expect(failure.message).toMatch(new RegExp(`^${path}:2: not valid TOML: [^\\n]+$`));
  });

  it.each([
    ['registry = 1', 'registry: expected a list, got the number 1'],
    ['registry = ["x"]', 'registry[0]: expected an object, got a string'],
    ['[[registry]]\ninsecure = true', 'registry[0].location: missing'],
    ['[[registry]]\nprefix = "quay.io"', 'registry[0].prefix: requires location'],
    ['[[registry]]\nlocation = "a"\nblcoked = true', 'x.conf:3: registry[0].blcoked: unknown field'],
    ['[[registry]]\nlocation = 1', 'registry[0].location: expected a string, got the number 1'],
    [
      '[[registry]]\nlocation = "a"\ninsecure = "yes"',
      'registry[0].insecure: expected true or false, got a string',
    ],
    ['[[registry]]\nlocation = "https://a"', 'expected host[:port][/path] without scheme, got "https://a"'],
    ['[[registry]]\nprefix = "a.*.io"\nlocation = "a"', 'a wildcard is allowed as *.domain only'],
    [
      '[[registry]]\nlocation = "a"\n[[registry.mirror]]\ninsecure = true',
      'registry[0].mirror[0].location: missing',
    ],
    [
      '[[registry]]\nlocation = "a"\n[[registry.mirror]]\nlocation = "b"\npull-from-mirror = "often"',
      'registry[0].mirror[0].pull-from-mirror: unsupported value "often"',
    ],
    [
      '[registries.search]\nregistries = []\n[[registry]]\nlocation = "a"',
      '[registries.…] of format 1 cannot be combined with [[registry]] of format 2',
    ],
    [
      '[registries.insecure]\nregistries = "a"',
      'registries.insecure.registries: expected a list, got a string',
    ],
  ])('reports the problem of %j', async (text, problem) => {
    const failure = await failureOf(parseRegistriesConf(text, 'x.conf'));
    expect(failure).toMatchObject({ code: 'INVALID', file: 'x.conf' });
    expect(failure.message).toContain(problem);
  });

  it.each([
    ['a.io:99999'],
    ['a.io:0'],
    ['a.io:port'],
    ['a.io:'],
    ['[::1'],
    ['[::g]:5000'],
    ['1.2.3.999'],
    ['a%2fb.io'],
    ['a<b'],
    ['-a.io'],
    ['a\\\\b'],
  ])('names file and line of host %s', async (host) => {
    const good = '[[registry]]\nlocation = "good.io"\n\n';
    const failures = await Promise.all(
      [
        `${good}[[registry]]\n# a comment\nlocation = "${host}"\n`,
        `${good}[[registry]]\ninsecure = true\n  prefix = '${host.replaceAll('\\\\', '\\')}/ns'\nlocation = "a.io"`,
        `[[registry]]\nlocation = "a.io"\n[[registry.mirror]]\nlocation = "b.io"\n[[registry.mirror]]\nlocation = "${host}/x"`,
        `[registries.search]\nregistries = []\n[registries.insecure]\n# a comment\n\nregistries = ["${host}"]`,
      ].map((text) => failureOf(parseRegistriesConf(text, 'x.conf'))),
    );
    const paths = [
      'registry[1].location',
      'registry[1].prefix',
      'registry[0].mirror[1].location',
      'registries.',
    ];
    for (const [i, failure] of failures.entries()) {
      expect(failure).toMatchObject({ code: 'INVALID', file: 'x.conf', line: 6 });
      expect(failure.message).toMatch(
        /^x\.conf:6: .*: (invalid host or port|expected host\[:port\]\[\/path\])/,
      );
      expect(failure.message).toContain(paths[i]);
    }
  });

  it('names the line of an entry in an array of several lines, and of a key that is missing', async () => {
    const entries = '[registries.block]\nregistries = [\n  "a.io",\n  "b.io:0",\n]\n';
    const mirror = '[[registry]]\nlocation = "a"\n\n[[registry.mirror]]\ninsecure = true\n';
    expect(await failureOf(parseRegistriesConf(entries, 'x.conf'))).toMatchObject({
      line: 4,
      path: ['registries', 'block', 'registries', 1],
    });
    expect(await failureOf(parseRegistriesConf(mirror, 'x.conf'))).toMatchObject({ line: 4 });
  });

  it.each([
    'a.io',
    'a_b.io:5000',
    'localhost:65535',
    '[::1]:5000/ns/name',
    '10.0.0.1/x',
    'A.io.',
    'a.io/n_s/a.b-c',
  ])('takes %s', async (location) => {
    const [rule] = await parseRegistriesConf(`[[registry]]\nlocation = "${location}"`, 'x.conf');
    expect(rule).toMatchObject({ prefix: location, location });
  });

  it('makes an address of whatever it accepts, or says what is wrong', async () => {
    const text = fc.oneof(
      fc.stringMatching(/^[a-z0-9.:[\]_%\\<~-]{1,12}(\/[a-z0-9._%~-]{0,4}){0,2}$/),
      fc.string({ maxLength: 12 }),
    );
    await fc.assert(
      fc.asyncProperty(text, text, async (location, mirror) => {
        const conf = `[[registry]]\nprefix = "quay.io/ns/name"\nlocation = ${JSON.stringify(location)}\n[[registry.mirror]]\nlocation = ${JSON.stringify(mirror)}`;
        let places: ResolvedLocation[];
        try {
          places = resolveLocations(await parseRegistriesConf(conf, 'x.conf'), 'quay.io', 'ns/name/x');
        } catch (error) {
          expect(error).toBeInstanceOf(OpmateError);
          return;
        }
        for (const { registry, repository } of places) {
          expect(new URL(`https://${registry}/v2/${repository}/tags/list`).pathname).toBe(
            `/v2/${repository}/tags/list`,
          );
        }
      }),
    );
  });

  it('refuses a location that leaves no repository', () => {
    const rule = {
      prefix: 'quay.io/ns/name',
      location: 'mirror.io',
      insecure: false,
      blocked: false,
      mirrors: [],
    };
    const resolve = () => resolveLocations([{ ...rule, file: 'x.conf' }], 'quay.io', 'ns/name');
    expect(resolve).toThrow('x.conf: quay.io/ns/name: no repository left in location "mirror.io"');
  });

  it('fails with a message for any text', async () => {
    const words = fc.constantFrom(
      '[[registry]]',
      '\n',
      'location',
      '=',
      '"a.io"',
      'mirror',
      '[',
      ']',
      'true',
      '{',
      '}',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(words, { maxLength: 12 }), async (parts) => {
        const outcome = await parseRegistriesConf(parts.join(' '), 'x.conf').catch((error: unknown) => error);
        expect(Array.isArray(outcome) || String(outcome).includes('x.conf')).toBe(true);
      }),
    );
  });
});

describe('oci/registries-conf: places', () => {
  it('leaves alone what no prefix matches', async () => {
    const conf = '[[registry]]\nlocation = "quay.io/ns"\ninsecure = true\n';
    for (const name of ['quay.io/nsx/a', 'quay.io/a', 'quay.io:5000/ns/a', 'my.quay.io/ns/a']) {
      expect(await resolve(conf, name)).toEqual([name.replace('/', ' ')]);
    }
    expect(await resolve(conf, 'quay.io/ns/a')).toEqual(['insecure quay.io ns/a']);
  });

  it('rewrites by the longest prefix', async () => {
    const conf = `
      [[registry]]
      prefix = "quay.io"
      location = "mirror.corp:5000/quay"
      [[registry]]
      prefix = "quay.io/ns/name"
      location = "other.corp/name2"
      [[registry]]
      prefix = "quay.io/ns"
      location = "ns.corp"`;
    expect(await resolve(conf, 'quay.io/x/y')).toEqual(['mirror.corp:5000 quay/x/y']);
    expect(await resolve(conf, 'quay.io/ns/name')).toEqual(['other.corp name2']);
    expect(await resolve(conf, 'quay.io/ns/name/sub')).toEqual(['other.corp name2/sub']);
    expect(await resolve(conf, 'quay.io/ns/names')).toEqual(['ns.corp names']);
  });

  it('matches the hosts below a domain by *.domain', async () => {
    const conf =
      '[[registry]]\nprefix = "*.example.com"\nlocation = "corp.io/ex"\n[[registry]]\nprefix = "*.b.io"';
    expect(await resolve(conf, 'a.example.com/x/y')).toEqual(['corp.io ex/x/y']);
    expect(await resolve(conf, 'a.b.example.com/x')).toEqual(['corp.io ex/x']);
    expect(await resolve(conf, 'example.com/x')).toEqual(['example.com x']);
    expect(await resolve(conf, 'a.b.io:5000/x')).toEqual(['a.b.io:5000 x']);
  });

  const mirrors = `
    [[registry]]
    location = "quay.io/ns"
    [[registry.mirror]]
    location = "one.corp/m"
    insecure = true
    [[registry.mirror]]
    location = "digests.corp"
    pull-from-mirror = "digest-only"
    [[registry.mirror]]
    location = "tags.corp"
    pull-from-mirror = "tag-only"`;

  it('puts mirrors first, those that fit tag or digest', async () => {
    const own = 'quay.io ns/a';
    const one = 'mirror insecure one.corp m/a';
    expect(await resolve(mirrors, 'quay.io/ns/a')).toEqual([one, 'mirror tags.corp a', own]);
    expect(await resolve(mirrors, 'quay.io/ns/a', { byDigest: true })).toEqual([
      one,
      'mirror digests.corp a',
      own,
    ]);
    expect(await resolve(mirrors, 'quay.io/ns/a', { withoutMirrors: true })).toEqual([own]);
  });

  it('keeps mirrors for digests where the registry says so', async () => {
    const conf = `
      [[registry]]
      location = "quay.io"
      mirror-by-digest-only = true
      [[registry.mirror]]
      location = "m.corp"`;
    expect(await resolve(conf, 'quay.io/a')).toEqual(['quay.io a']);
    expect(await resolve(conf, 'quay.io/a', { byDigest: true })).toEqual(['mirror m.corp a', 'quay.io a']);
  });

  it('refuses what is blocked, naming file and prefix', async () => {
    const conf = '[[registry]]\nprefix = "quay.io/bad"\nlocation = "quay.io/bad"\nblocked = true\n';
    const failure = await failureOf(resolve(conf, 'quay.io/bad/a'));
    expect(failure.message).toBe('quay.io/bad/a: blocked by test.conf (prefix quay.io/bad)');
    expect(await resolve(conf, 'quay.io/good/a')).toEqual(['quay.io good/a']);
  });

  it('reads format 1', async () => {
    const conf = `
      [registries.search]
      registries = ["docker.io"]
      [registries.insecure]
      registries = ["reg.corp:5000"]
      [registries.block]
      registries = ["bad.io"]`;
    expect(await resolve(conf, 'reg.corp:5000/a')).toEqual(['insecure reg.corp:5000 a']);
    expect((await failureOf(resolve(conf, 'bad.io/a'))).message).toContain('blocked by test.conf');
  });
});
