import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { optionName, optionWords } from '../../src/cli/reports/option-words.js';
import { commands } from '../../src/cli/tree.js';

const root = path.resolve(import.meta.dirname, '../..');
const source = path.join(root, 'src');

/** Folders of `src` from the innermost outwards. A file may import from its own folder and from earlier ones. */
const arrow = [
  ['core'],
  ['document'],
  ['files'],
  ['kube'],
  ['model'],
  ['graph'],
  ['archive'],
  ['helm'],
  ['trust'],
  ['oci'],
  ['bundle'],
  ['catalog'],
  ['sqlite'],
  ['source'],
  ['solve'],
  ['cluster'],
  ['release'],
  ['serve'],
  ['mirror'],
  ['repo'],
  ['client', 'view'],
  ['api'],
  ['cli'],
];

/** Folder that alone may import a library, or one file besides it, and how many modules do. */
const libraries: Record<string, { folder: string; modules: number; also?: string }> = {
  commander: { folder: 'cli', modules: 40 },
  chalk: { folder: 'cli', modules: 1 },
  ora: { folder: 'cli', modules: 1 },
  'better-sqlite3': { folder: 'sqlite', modules: 1 },
  'node-fetch': { folder: 'oci', modules: 1 },
  'http-proxy-agent': { folder: 'oci', modules: 1 },
  'https-proxy-agent': { folder: 'oci', modules: 1 },
  'smol-toml': { folder: 'oci', modules: 1 },
  'tar-stream': { folder: 'archive', modules: 1 },
  fzstd: { folder: 'archive', modules: 1 },
  ajv: { folder: 'helm', modules: 1 },
  bcryptjs: { folder: 'serve', modules: 1 },
  '@marcbachmann/cel-js': { folder: 'kube', modules: 1 },
  diff: { folder: 'core', modules: 1 },
  '@noble/ciphers': { folder: 'trust', modules: 1 },
  '@sigstore/bundle': { folder: 'trust', modules: 1 },
  '@sigstore/core': { folder: 'trust', modules: 1 },
  '@sigstore/protobuf-specs': { folder: 'trust', modules: 1 },
  '@sigstore/verify': { folder: 'trust', modules: 1 },
  '@peculiar/x509': { folder: 'serve', modules: 1 },
  'reflect-metadata': { folder: 'serve', modules: 1 },
  graphql: { folder: 'serve/graphql', modules: 3 },
  preact: { folder: 'view/page', modules: 23 },
  'js-yaml': { folder: 'document/yaml', modules: 1 },
  yaml: { folder: 'repo/edit', modules: 3 },
  '@grpc/grpc-js': { folder: 'client', modules: 1 },
};

interface Import {
  file: string;
  folder: string;
  target: string;
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(directory, entry.name);
    return entry.isDirectory() ? filesBelow(file) : [file];
  });
}

function importsOf(file: string): Import[] {
  const text = readFileSync(file, 'utf8');
  const folder = path.relative(source, file).split(path.sep)[0] as string;
  const found = [
    ...text.matchAll(
      /(?:^|\n)\s*(?:import|export)\s(?:type\s)?[^;]*?from\s+'([^']+)'|import\('([^']+)'\)|^import '([^']+)'/g,
    ),
  ];
  return found.map((match) => ({
    file: path.relative(root, file),
    folder,
    target: (match[1] ?? match[2] ?? match[3]) as string,
  }));
}

const imports = filesBelow(source)
  .filter((file) => /\.tsx?$/.test(file))
  .flatMap(importsOf);

/** Each import that leads back to where it was made, as `a imports b`: those within a strongly connected part. */
function findCircles(imported: ReadonlyMap<string, readonly string[]>): string[] {
  const reachable = (from: string): Set<string> => {
    const seen = new Set<string>();
    const next = [...(imported.get(from) ?? [])];
    for (let module = next.pop(); module !== undefined; module = next.pop()) {
      if (seen.has(module)) continue;
      seen.add(module);
      next.push(...(imported.get(module) ?? []));
    }
    return seen;
  };
  const inCircle = new Map([...imported.keys()].map((module) => [module, reachable(module)] as const));
  return [...imported].flatMap(([module, targets]) =>
    targets
      .filter((target) => inCircle.get(target)?.has(module) === true)
      .map((target) => `${module} imports ${target}`),
  );
}

/** Types that declaration files of inferred constants name, so that the compiler needs them exported. */
const namedInDeclarations = ['CommandDeclaration', 'ListType', 'PointerType', 'RecordedRun'];

/**
 * Exports of `src` that no other module imports, nor a test: a module that is imported must name them somewhere. Types of
 * the options and results of verbs are left out: callers may name them.
 */
function findUnusedExports(): string[] {
  const files = ['src', 'test', 'bench', 'bin'].flatMap((folder) =>
    filesBelow(path.join(root, folder)).filter((file) => /\.(tsx?|js)$/.test(file)),
  );
  const readers = new Map<string, Set<string>[]>();
  for (const file of files) {
    const text = readFileSync(file, 'utf8');
    const words = new Set(text.match(/\w+/g));
    for (const [, target] of text.matchAll(/(?:from|import)\s*\(?'([^']+)'/g)) {
      if (!target?.startsWith('.')) continue;
      const imported = path.relative(root, path.resolve(path.dirname(file), target));
      const module = imported.replace(/\.js$/, '').replace(/^(dist|lib)\//, 'src/');
      readers.set(module, [...(readers.get(module) ?? []), words]);
    }
  }
  const exported = /^export (?:async |abstract )*(?:function\*?|class|const|interface|type) (\w+)/gm;
  return filesBelow(source).flatMap((file) => {
    const module = path.relative(root, file).replace(/\.tsx?$/, '');
    return [...readFileSync(file, 'utf8').matchAll(exported)]
      .filter(([text]) => !module.startsWith('src/api/') || !/^export (?:interface|type) /.test(text))
      .map(([, name]) => name as string)
      .filter((name) => !namedInDeclarations.includes(name))
      .filter((name) => !readers.get(module)?.some((words) => words.has(name)))
      .map((name) => `${module} exports ${name}`);
  });
}

/** Names that several modules export. */
const exportedTwice = [
  // Each module of a command exports its declaration under the name by which `cli/tree.ts` loads it.
  'command',
  'registryCommand',
];

/**
 * Modules below `api` that `cli` imports, with the reason: what it reads, prints and lists in help. All work is done by verbs
 * of `api`. Types of what a command prints may come from any room.
 */
const belowApi: Readonly<Record<string, string>> = {
  'bundle/plain/write': 'prints manifests',
  'bundle/validate/validate-bundle': 'names of validators, in help and flags',
  'catalog/doctor/checks': 'names and summaries of checks, in help and reports',
  'catalog/gate/gate': 'names of gates, in help and flags',
  'catalog/template/template': 'names of template types, which an argument may be instead of a file',
  'cluster/objects': 'prints objects of a cluster',
  'files/own-files': 'help, licenses and version are files of the program',
  'files/private-directory': 'keeps names for completion',
  'files/read-file': 'reads files that arguments name',
  'files/replace-file': 'writes what a command prints to a file',
  'mirror/image-set/image-set-mirror': 'prints the report of a run that mirrored nothing',
  'model/catalog-diagnostic': 'prints findings',
  'model/declarative-config': 'prints blobs by their schemas',
  'model/encode': 'prints blobs',
  'oci/image/read-limited': 'reads stdin',
};

/**
 * Strings of each room below `cli` that name a flag or command of opmate: words of other tools, which are theirs to the
 * byte. Errors name options and verbs of the library instead; `cli/reports/option-words.ts` has their flags and commands.
 */
const flagWords: Readonly<Record<string, number>> = {
  // Flags of zstd, of kubectl, and in Dockerfiles of opm.
  archive: 1,
  catalog: 2,
  // Verdicts and steps of the migration library of OLM.
  solve: 10,
  // Errors of `opm registry add`.
  sqlite: 4,
};

/** First words of the commands of `cli/tree.ts`. */
const commandNames = Object.keys(commands).join('|');

/** Returns the strings of a module, without comments, that name a flag or command; those that are only a flag are left out. */
function findFlagWords(text: string): string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  const strings = code.match(/'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g) ?? [];
  const named = new RegExp(
    `[\\s(=:]--[a-z][a-z-]+|^['\`]--[a-z][a-z-]+[: ]|\\bopmate (?:${commandNames})\\b`,
  );
  return strings.filter((string) => named.test(string) && !/\b(?:gpg|skopeo) /.test(string));
}

/** Returns the options and verbs of the library that the strings of a module name. */
function findOptionNames(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  if (text.match(optionName) === null) return [];
  const names: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node))
      names.push(...(node.text.match(optionName) ?? []));
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest));
  return names;
}

/** Maximum lines of a function, so that it is read in one go. */
const maxFunctionLines = 60;

/** Functions above `maxFunctionLines` that are tables, with the reason. */
const tables: Readonly<Record<string, string>> = {
  'oci/registry/registry-client.ts createRegistryRepository': 'a repository is copied by those around it',
  'oci/layout/layout-content.ts createContentRepository': 'a repository is copied by those around it',
  'oci/layout/layout.ts openLayout': 'a repository is copied by those around it',
  'document/yaml/scanner.ts #fetch': 'a token per first character',
  'catalog/content/bundle-messages.ts synthesizeCsv': 'the fields of a ClusterServiceVersion',
};

/** Returns the functions above `maxFunctionLines` of a module, by its path and their name; callbacks have none. */
function findLongFunctions(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  if (text.split('\n').length <= maxFunctionLines) return [];
  const sourceFile = ts.createSourceFile(file, text, ts.ScriptTarget.Latest);
  const lineOf = (position: number): number => sourceFile.getLineAndCharacterOfPosition(position).line;
  const long: string[] = [];
  const visit = (node: ts.Node, name?: ts.Node): void => {
    const lines = lineOf(node.end) - lineOf(node.getStart(sourceFile)) + 1;
    if (lines <= maxFunctionLines) return;
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const shown = (node.name ?? name)?.getText(sourceFile) ?? 'callback';
      long.push(`${path.relative(source, file)} ${shown}`);
    }
    ts.forEachChild(node, (child) => visit(child, ts.isVariableDeclaration(node) ? node.name : undefined));
  };
  visit(sourceFile);
  return long;
}

function rank(folder: string): number {
  return arrow.findIndex((level) => level.includes(folder));
}

describe('architecture', () => {
  it('lets every folder import only from itself and from folders before it', () => {
    const wrong = imports
      .filter(({ target, folder }) => target.startsWith('.') && !folder.endsWith('.ts'))
      .filter(({ file, folder, target }) => {
        const resolved = path.relative(source, path.resolve(root, path.dirname(file), target));
        const other = resolved.split(path.sep)[0] as string;
        if (other === folder) return false;
        return rank(other) < 0 || rank(other) >= rank(folder);
      })
      .map(({ file, target }) => `${file} imports ${target}`);
    expect(wrong).toEqual([]);
  });

  it('knows every folder of src', () => {
    const folders = readdirSync(source, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map(({ name }) => name).sort()).toEqual(arrow.flat().sort());
  });

  it('keeps functions at 60 lines at most, except tables', () => {
    const long = filesBelow(source)
      .filter((file) => /\.tsx?$/.test(file))
      .flatMap(findLongFunctions);
    const known = Object.keys(tables);
    expect(long.filter((name) => !known.includes(name))).toEqual([]);
    expect(known.filter((name) => !long.includes(name))).toEqual([]);
  });

  it('keeps folders of src at 20 files at most', () => {
    const counts = new Map<string, number>();
    for (const file of filesBelow(source)) {
      counts.set(path.dirname(file), (counts.get(path.dirname(file)) ?? 0) + 1);
    }
    expect(counts.size).toBeGreaterThan(40);
    expect([...counts].filter(([, count]) => count > 20)).toEqual([]);
  });

  it('exports only what another module or a test imports', () => {
    expect(findUnusedExports()).toEqual([]);
  });

  it('gives a name to one thing only', () => {
    const homes = new Map<string, Set<string>>();
    for (const file of filesBelow(source).filter((name) => /\.tsx?$/.test(name))) {
      const exported = /^export (?:async |abstract )*(?:function\*?|class|const|interface|type) (\w+)/gm;
      for (const [, name] of readFileSync(file, 'utf8').matchAll(exported)) {
        homes.set(name as string, (homes.get(name as string) ?? new Set()).add(path.relative(source, file)));
      }
    }
    expect(homes.size).toBeGreaterThan(2000);
    const shared = [...homes].filter(([, files]) => files.size > 1).map(([name]) => name);
    expect(shared.sort()).toEqual([...exportedTwice].sort());
  });

  it('lets the page import the shape of responses, drawing, search and printable text only', () => {
    const page = imports.filter(({ file }) => file.startsWith('src/view/page/'));
    expect(page.length).toBeGreaterThan(20);
    const outside = page
      .filter(({ target }) => !/^preact(\/hooks)?$/.test(target))
      .map(({ file, target }) => path.join(path.dirname(file), target))
      .filter((target) => !target.startsWith('src/view/page/'));
    expect([...new Set(outside)].sort()).toEqual([
      'src/core/printable.js',
      'src/view/graph-drawing.js',
      'src/view/responses.js',
      'src/view/search.js',
    ]);
    const texts = filesBelow(path.join(source, 'view', 'page')).map((file) => readFileSync(file, 'utf8'));
    expect(texts.filter((text) => /innerHTML|outerHTML|insertAdjacentHTML|srcdoc/i.test(text))).toEqual([]);
  });

  it('has no circle of imports, of types neither', () => {
    const byFile = new Map<string, string[]>();
    for (const { file, target } of imports.filter((one) => one.target.startsWith('.'))) {
      const module = path.join(path.dirname(file), target).replace(/\.js$/, '');
      byFile.set(file.replace(/\.tsx?$/, ''), [...(byFile.get(file.replace(/\.tsx?$/, '')) ?? []), module]);
    }
    expect(findCircles(byFile)).toEqual([]);
  });

  it('exports types where they are made only, and from the library', () => {
    const outside = filesBelow(source)
      .filter((file) => file !== path.join(source, 'index.ts'))
      .flatMap((file) =>
        [...readFileSync(file, 'utf8').matchAll(/^export (type )?{([^}]*)} from '[^']+'/gm)]
          .filter(([, type, names]) => type !== undefined || /\btype /.test(names as string))
          .map(() => path.relative(root, file)),
      );
    expect(outside).toEqual([]);
  });

  it('casts through unknown only where a type of others is wrong', () => {
    const files = filesBelow(source)
      .filter((file) => readFileSync(file, 'utf8').includes('as unknown as'))
      .map((file) => path.relative(source, file));
    expect(files.sort()).toEqual([
      'catalog/content/protobuf.ts',
      'cli/bundle/unpack.ts',
      'document/json.ts',
      'oci/image/manifest.ts',
      'serve/http/encoding.ts',
      'trust/openpgp-packets.ts',
    ]);
  });

  it('keeps the command line out of the library', () => {
    const fromIndex = imports.filter(({ folder }) => folder === 'index.ts').map(({ target }) => target);
    expect(fromIndex.length).toBeGreaterThan(10);
    expect(fromIndex.filter((target) => target.includes('/cli/'))).toEqual([]);
  });

  it('lets commands call verbs of api only', () => {
    const statements = /^(?:import|export)\s(?!type\s)([^;]*?)\sfrom\s+'(\.[^']+)'|import\('(\.[^']+)'\)/gm;
    const modules = new Set<string>();
    for (const file of filesBelow(path.join(source, 'cli'))) {
      for (const [, names, target, lazy] of readFileSync(file, 'utf8').matchAll(statements)) {
        const isTypes = names
          ?.replace(/[{}]/g, '')
          .split(',')
          .every((name) => /^\s*(?:type .*)?$/s.test(name));
        const module = path.relative(source, path.resolve(path.dirname(file), target ?? (lazy as string)));
        if (isTypes !== true && !/^(?:api|cli|core|document)\//.test(module))
          modules.add(module.replace(/\.js$/, ''));
      }
    }
    expect([...modules].sort()).toEqual(Object.keys(belowApi).sort());
  });

  it('names options, not flags, below cli', () => {
    const found: Record<string, number> = {};
    for (const file of filesBelow(source).filter((name) => name.endsWith('.ts'))) {
      const [room = ''] = path.relative(source, file).split(path.sep);
      const { length } = findFlagWords(readFileSync(file, 'utf8'));
      if (room !== 'cli' && length > 0) found[room] = (found[room] ?? 0) + length;
    }
    const grown = Object.entries(found).filter(([room, number]) => number > (flagWords[room] ?? 0));
    expect(grown).toEqual([]);
  });

  it('has flags and commands for the options and verbs in messages, and for no others', () => {
    const files = filesBelow(source).filter((file) => file.endsWith('.ts'));
    const named = files.flatMap((file) => {
      const module = path.relative(source, file);
      // Columns of a table `api`.
      if (module.startsWith('cli/') || module === 'sqlite/schema/migrations.ts') return [];
      return findOptionNames(file);
    });
    // Fields of an ImageSetConfiguration are `mirror.…` too, and hosts `registry.…`.
    const unknown = named.filter(
      (name) => !/^(?:mirror|registry)\./.test(name) && !Object.hasOwn(optionWords, name),
    );
    expect(unknown).toEqual([]);
    const names = new Set(named);
    expect(Object.keys(optionWords).filter((name) => !names.has(name))).toEqual([]);
    const library = readFileSync(path.join(source, 'index.ts'), 'utf8');
    const verbs = Object.keys(optionWords).filter((name) => name.startsWith('api.'));
    expect(verbs.filter((name) => !new RegExp(`\\b${name.slice(4)}\\b`).test(library))).toEqual([]);
  });

  it('imports each library in one folder, most of them in one module', () => {
    const outside = imports.filter(({ target }) => !target.startsWith('.') && !target.startsWith('node:'));
    const byLibrary = new Map<string, Set<string>>();
    for (const { file, target } of outside) {
      const name = target
        .split('/')
        .slice(0, target.startsWith('@') ? 2 : 1)
        .join('/');
      byLibrary.set(name, (byLibrary.get(name) ?? new Set()).add(file));
    }
    for (const [name, files] of byLibrary) {
      const allowed = libraries[name];
      expect(allowed, `${name} is not in the list of this test`).toBeDefined();
      for (const file of files) {
        if (file !== allowed?.also) expect(file).toContain(`src/${allowed?.folder}/`);
      }
      expect([...files].length, `${name}: ${[...files].join(', ')}`).toBeLessThanOrEqual(
        allowed?.modules ?? 0,
      );
    }
  });

  it('stages and renames in one folder', () => {
    const names = /import\s(?:type\s)?{([^}]*)} from 'node:fs(?:\/promises)?'/g;
    const outside = filesBelow(source)
      .filter((file) => !file.startsWith(path.join(source, 'files') + path.sep))
      .flatMap((file) =>
        [...readFileSync(file, 'utf8').matchAll(names)]
          .filter((match) => /\b(?:rename|mkdtemp)(?:Sync)?\b/.test(match[1] as string))
          .map(() => path.relative(root, file)),
      );
    expect(outside).toEqual([]);
    // It tells of a full disk as ENOENT; `makeDirectory` does not.
    const recursive = filesBelow(source).filter((file) =>
      /mkdir(?:Sync)?\([^;]*recursive: true/.test(readFileSync(file, 'utf8')),
    );
    expect(recursive).toEqual([]);
  });

  it('installs only what cannot be bundled', () => {
    const { optionalDependencies } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
      optionalDependencies: Record<string, string>;
    };
    expect(Object.keys(optionalDependencies)).toEqual(['better-sqlite3']);
  });

  it('runs no program synchronously in tests that run the commands of scripts', () => {
    // The process would wait for a script that waits for it; `runProgram` lets it go on.
    const running = filesBelow(path.join(root, 'test')).filter((file) =>
      /\b(?:useCommandInPath|useExampleWorld|createCiRunner)\(/.test(readFileSync(file, 'utf8')),
    );
    expect(running.length).toBeGreaterThan(5);
    const waiting = running.filter((file) =>
      /\b(?:spawn|exec|execFile)Sync\(/.test(readFileSync(file, 'utf8')),
    );
    expect(waiting).toEqual([]);
  });

  it('lists no library that no module imports', () => {
    const used = new Set(imports.map(({ target }) => target.replace(/^(@[^/]+\/[^/]+)\/.*$/, '$1')));
    expect(Object.keys(libraries).filter((name) => !used.has(name))).toEqual([]);
  });
});
