/** Commands that meet a fault of the file system at one of their calls, by an interposed library. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readFile, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import Sqlite from 'better-sqlite3';
import { listCatalogFiles } from '../../src/catalog/walk.js';
import { isStagingName, journalName } from '../../src/files/staging.js';
import { type CommandResult, projectRoot, runOpmate } from './command-line.js';
import { inDirectory, smallBundle } from './small-bundle.js';

/** `kill` ends the process before the call; `ENOSPC+` fails it and all later ones that need space. */
export type FaultKind = 'kill' | 'EIO' | 'ENOSPC' | 'ENOSPC+';
export const faultKinds: readonly FaultKind[] = ['kill', 'EIO', 'ENOSPC', 'ENOSPC+'];

/** A command that writes, run in a directory that holds `prepareFiles` and what `prepare` has made there. */
export interface WritingCommand {
  name: string;
  args: readonly string[];
  /** Commands run before, without faults. */
  prepare?: readonly (readonly string[])[];
  /** Empty directories that are there before. */
  directories?: readonly string[];
  /** Catalog directories that nobody may read half-written. */
  catalogs?: readonly string[];
  /** A directory whose files change as one: all of before, or all of the undisturbed run, or a journal to return by. */
  asOne?: string;
  /** Files of the working directory; in them and in arguments `CATALOG` stands for a catalog image. */
  files?: Readonly<Record<string, string>>;
  /** Keeps what a failed run has stored, such as blobs of a layout; the next one goes on with it. */
  keepsProgress?: boolean;
}

const installModes = [{ type: 'AllNamespaces', supported: true }];
const installable = inDirectory('installable', smallBundle({ spec: { installModes } }));
const imageSet = `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: CATALOG
    packages:
    - name: widget
`;
const deletions = (versions: readonly string[]): string =>
  `kind: DeleteImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
delete:
  additionalImages:
${versions.map((version) => `  - name: registry.test/widget:${version}\n`).join('')}`;
const generateDeletions = (config: string): string[] => [
  ...['mirror', 'delete', '--generate', '-c', config],
  ...['docker://mirror.test/m', '--workspace', 'file://space'],
];
const tag = ['--alpha-image-ref-template', 'registry.test/{{.Package}}:v{{.Version}}'];

export const writingCommands: readonly WritingCommand[] = [
  { name: 'migrate to a new directory', args: ['migrate', 'cat', 'out'], catalogs: ['out'] },
  {
    name: 'migrate to an empty directory',
    args: ['migrate', 'cat', 'out'],
    directories: ['out'],
    catalogs: ['out'],
  },
  {
    name: 'catalog filter to an empty directory, with a report',
    args: ['catalog', 'filter', 'cat', '-p', 'widget', '-o', 'out', '--report', 'report.json'],
    directories: ['out'],
    catalogs: ['out'],
  },
  {
    name: 'catalog add over two files',
    args: ['catalog', 'add', 'cat', 'b3', ...tag],
    catalogs: ['cat'],
  },
  {
    name: 'catalog remove of three files',
    args: ['catalog', 'remove', 'cat', '--package', 'gadget', '--force'],
    catalogs: ['cat'],
  },
  {
    name: 'catalog deprecate',
    args: ['catalog', 'deprecate', 'cat', '--package', 'widget', '--message', 'old'],
    catalogs: ['cat'],
  },
  { name: 'catalog publish to a new directory', args: ['catalog', 'publish', 'cat', '--to', 'public'] },
  {
    name: 'catalog publish to an empty directory',
    args: ['catalog', 'publish', 'cat', '--to', 'public'],
    directories: ['public'],
  },
  {
    name: 'catalog publish of a changed catalog beside another',
    prepare: [
      ['catalog', 'publish', 'cat', '--to', 'public'],
      ['catalog', 'publish', 'cat', '--name', 'other', '--to', 'public', '--update'],
      ['catalog', 'deprecate', 'cat', '--package', 'widget', '--message', 'old'],
    ],
    args: ['catalog', 'publish', 'cat', '--to', 'public', '--update'],
  },
  {
    name: 'catalog build to a layout',
    keepsProgress: true,
    args: ['catalog', 'build', 'cat', '-i', 'scratch', '--save', 'oci:layout:v1'],
  },
  {
    name: 'catalog build to an archive',
    args: ['catalog', 'build', 'cat', '-i', 'scratch', '--save', 'oci-archive:image.tar:v1'],
  },
  {
    name: 'oci copy to a layout',
    keepsProgress: true,
    prepare: [['catalog', 'build', 'cat', '-i', 'scratch', '--save', 'oci:from:v1']],
    args: ['oci', 'copy', 'oci:from:v1', 'oci:to:v1'],
  },
  { name: 'generate dockerfile', args: ['generate', 'dockerfile', 'cat'] },
  {
    name: 'bundle generate',
    args: ['bundle', 'generate', '-d', 'bare/manifests', '-p', 'widget', '-c', 'stable', '-e', 'stable'],
  },
  {
    name: 'bundle build to a layout',
    keepsProgress: true,
    args: [
      'bundle',
      'build',
      '-d',
      'bare/manifests',
      '-p',
      'widget',
      '-c',
      'stable',
      '--save',
      'oci:layout:v1',
    ],
  },
  {
    name: 'registry add to a new database',
    args: ['registry', 'add', '-d', 'new.db', '-b', 'b1'],
  },
  {
    name: 'registry add to a database',
    prepare: [['registry', 'add', '-d', 'a.db', '-b', 'b1']],
    args: ['registry', 'add', '-d', 'a.db', '-b', 'b2'],
  },
  {
    name: 'registry rm',
    prepare: [['registry', 'add', '-d', 'a.db', '-b', 'b1,g1']],
    args: ['registry', 'rm', '-d', 'a.db', '-o', 'gadget'],
  },
  {
    name: 'registry prune',
    prepare: [['registry', 'add', '-d', 'a.db', '-b', 'b1,g1']],
    args: ['registry', 'prune', '-d', 'a.db', '-p', 'widget'],
  },
  {
    name: 'registry images with manifests',
    args: [
      'registry',
      'images',
      '--from',
      'cat',
      '--to',
      'mirror.test',
      '--catalog-image',
      'registry.test/c:v1',
    ],
  },
  {
    name: 'oci copy from a registry to a layout that is there',
    keepsProgress: true,
    prepare: [['catalog', 'build', 'cat', '-i', 'scratch', '--save', 'oci:to:v1']],
    args: ['oci', 'copy', 'CATALOG', 'oci:to:v2', '--use-http'],
  },
  {
    name: 'index add that writes a database and a Dockerfile',
    args: ['index', 'add', '--generate', '-b', 'b1', '-i', 'registry.test/base:v1'],
  },
  {
    name: 'index export of two packages',
    prepare: [['registry', 'add', '-d', 'a.db', '-b', 'b1,g1']],
    args: ['index', 'export', '-i', 'a.db', '-p', 'widget,gadget', '-f', 'exported'],
  },
  {
    name: 'registry init',
    files: {
      'packages/widget/widget.package.yaml':
        'packageName: widget\ndefaultChannel: stable\nchannels:\n- {name: stable, currentCSV: widget.v1.0.0}\n',
      'packages/widget/1.0.0/csv.yaml': smallBundle()['manifests/csv.yaml'] as string,
    },
    args: ['registry', 'init', '-m', 'packages', '-o', 'new.db'],
  },
  {
    name: 'bundle render to a directory',
    files: installable,
    args: ['bundle', 'render', 'installable', '--to', 'rendered', '--install-namespace', 'widgets'],
  },
  {
    name: 'bundle render with a new lock',
    files: installable,
    args: ['bundle', 'render', 'installable', '--install-namespace', 'widgets', '--lock', 'content.lock'],
  },
  {
    name: 'catalog mirror to files',
    args: [
      'catalog',
      'mirror',
      'CATALOG',
      'file:///index',
      '--dir',
      'disk',
      '--to-manifests=out',
      '--insecure',
    ],
    keepsProgress: true,
  },
  {
    name: 'mirror of an image set to an archive',
    files: { 'set.yaml': imageSet },
    args: ['mirror', '-c', 'set.yaml', 'file://out', '--insecure'],
    keepsProgress: true,
  },
  {
    name: 'mirror delete --generate over an older list',
    files: { 'old.yaml': deletions(['v1']), 'new.yaml': deletions(['v1', 'v2']) },
    prepare: [generateDeletions('old.yaml')],
    args: generateDeletions('new.yaml'),
    asOne: 'space/working-dir/delete',
  },
];

async function writeInputs(work: string, more: Readonly<Record<string, string>>): Promise<void> {
  const bundles = {
    ...inDirectory('b1', smallBundle()),
    ...inDirectory('b2', smallBundle({ version: '1.1.0', replaces: 'widget.v1.0.0' })),
    ...inDirectory('b3', smallBundle({ version: '1.1.0', replaces: 'widget.v1.0.0' })),
    ...inDirectory('g1', smallBundle({ packageName: 'gadget' })),
    'bare/manifests/csv.yaml': smallBundle()['manifests/csv.yaml'] as string,
  };
  const files: Record<string, string> = { ...bundles, ...more };
  for (const name of ['gadget', 'widget']) {
    const value = { packageName: name, version: '1.0.0' };
    const bundle = `${name}.v1.0.0`;
    const blobs = {
      package: { schema: 'olm.package', name, defaultChannel: 'stable' },
      channel: { schema: 'olm.channel', package: name, name: 'stable', entries: [{ name: bundle }] },
      bundle: {
        schema: 'olm.bundle',
        package: name,
        name: bundle,
        image: `registry.test/${name}:v1.0.0`,
        properties: [{ type: 'olm.package', value }],
      },
    };
    for (const [kind, blob] of Object.entries(blobs))
      files[`cat/${name}/${kind}.json`] = `${JSON.stringify(blob, null, 4)}\n`;
  }
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(work, name)), { recursive: true });
    await writeFile(path.join(work, name), text);
  }
}

/** Builds the library; undefined where there is no C compiler, or no Linux. */
export async function buildFaultLibrary(directory: string): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined;
  const library = path.join(directory, 'file-faults.so');
  const source = path.join(projectRoot, 'test/support/file-faults.c');
  try {
    const args = ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl', '-lpthread'];
    await promisify(execFile)('cc', args);
    return library;
  } catch {
    return undefined;
  }
}

/** What a tree holds: content sums by path, `null` for directories. Of databases their rows; lists of layouts have no order. */
type Snapshot = Record<string, string | null>;

async function snapshotOf(root: string): Promise<Snapshot> {
  const snapshot: Snapshot = {};
  // Reading a database takes back what was begun, and removes its journal.
  for (const name of await readdir(root)) if (name.endsWith('.db')) rowsOf(path.join(root, name));
  const names = await readdir(root, { recursive: true, withFileTypes: true });
  for (const entry of names) {
    const file = path.join(entry.parentPath, entry.name);
    const name = path.relative(root, file);
    if (entry.isDirectory()) snapshot[name] = null;
    else if (name.endsWith('.db')) snapshot[name] = rowsOf(file);
    else if (entry.name === 'index.json')
      snapshot[name] = [...(await readFile(file, 'utf8'))].sort().join('');
    else
      snapshot[name] = createHash('sha256')
        .update(await readFile(file))
        .digest('hex');
  }
  return snapshot;
}

function rowsOf(file: string): string {
  const database = new Sqlite(file);
  try {
    const tables = database
      .prepare(
        `SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'schema_migrations' ORDER BY 1`,
      )
      .pluck()
      .all() as string[];
    return tables
      .map((table) =>
        JSON.stringify([table, database.prepare(`SELECT * FROM "${table}"`).raw().all().map(String).sort()]),
      )
      .join('\n');
  } finally {
    database.close();
  }
}

/** What else a command may leave: locks, and the journal of a database, each taken over by the next. */
const sweptNames = /^index\.json\.lock$|^\.opmate\.lock-[0-9a-f]{16}$|\.db-journal$/;

function isLeftover(name: string): boolean {
  return name
    .split(path.sep)
    .some((part) => isStagingName(part) || part === journalName || sweptNames.test(part));
}

function without(snapshot: Snapshot, isLeft: (name: string) => boolean): string {
  const kept = Object.entries(snapshot).filter(([name]) => !isLeft(name));
  return JSON.stringify(kept.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Makes the directory in which a command is run, which is copied for every run: its files, home and temporary directory. */
async function prepareWorld(named: WritingCommand, catalogImage: string) {
  const withImage = (text: string): string => text.replace('CATALOG', catalogImage);
  const command = { ...named, args: named.args.map(withImage) };
  const files = Object.entries(named.files ?? {}).map(([name, text]) => [name, withImage(text)] as const);
  const root = await realpath(await mkdtemp(path.join(tmpdir(), 'opmate-faults-')));
  const base = path.join(root, 'base');
  const directories = (command.directories ?? []).map((name) => `work/${name}`);
  for (const name of ['work', 'home', 'temporary', ...directories])
    await mkdir(path.join(base, name), { recursive: true });
  await writeInputs(path.join(base, 'work'), Object.fromEntries(files));
  for (const args of command.prepare ?? []) expectDone(await runOpmate(args, optionsIn(base)));
  return { command, root, base, before: await snapshotOf(path.join(base, 'work')) };
}

/**
 * Runs a command and another one at once, `times` times, and returns what is wrong: an output that is none of running
 * only those that ended with 0, in one order or the other; leftovers; internal errors.
 */
export async function runAtOnce(
  named: WritingCommand,
  other: readonly string[],
  { catalogImage = '', times = 3 } = {},
): Promise<string[]> {
  const { command, root, base } = await prepareWorld(named, catalogImage);
  const commands = [command.args, other.map((arg) => arg.replace('CATALOG', catalogImage))];
  let worlds = 0;
  const inNewWorld = async (): Promise<string> => {
    const world = path.join(root, `world-${worlds++}`);
    await cp(base, world, { recursive: true });
    return world;
  };
  const orders = new Map<string, Promise<string>>();
  const afterOrder = (order: readonly number[]): Promise<string> => {
    const run = async (): Promise<string> => {
      const world = await inNewWorld();
      for (const i of order) await runOpmate(commands[i] as readonly string[], optionsIn(world));
      return without(await snapshotOf(path.join(world, 'work')), () => false);
    };
    const key = order.join();
    const done = orders.get(key) ?? run();
    orders.set(key, done);
    return done;
  };
  const wrong: string[] = [];
  for (let time = 0; time < times; time++) {
    const world = await inNewWorld();
    const results = await Promise.all(commands.map((args) => runOpmate(args, optionsIn(world))));
    const told = results.map(({ code, stderr }) => `${code}: ${stderr.trim()}`).join(' | ');
    if (/internal error|^ {4}at /m.test(told)) wrong.push(told);
    const after = await snapshotOf(path.join(world, 'work'));
    const left = Object.keys(after).filter(isLeftover);
    if (left.length > 0) wrong.push(`left ${left.join(', ')} (${told})`);
    const succeeded = [0, 1].filter((i) => results[i]?.code === 0);
    if (succeeded.length === 0) wrong.push(`neither succeeded: ${told}`);
    const possible = await Promise.all([afterOrder(succeeded), afterOrder([...succeeded].reverse())]);
    if (!possible.includes(without(after, isLeftover))) wrong.push(`neither order leads here: ${told}`);
  }
  await rm(root, { recursive: true, force: true });
  return wrong.map((text) => `${command.name} and ${other.join(' ')}: ${text}`);
}

/** One command with its undisturbed run, ready to be disturbed. */
export class FaultTrials {
  readonly command: WritingCommand;
  /** Names of the calls, in order. */
  readonly calls: string[];
  readonly #root: string;
  readonly #library: string;
  readonly #before: Snapshot;
  readonly #done: Snapshot;
  #trials = 0;

  private constructor(
    command: WritingCommand,
    state: { root: string; library: string; before: Snapshot; done: Snapshot; calls: string[] },
  ) {
    this.command = command;
    this.calls = state.calls;
    this.#root = state.root;
    this.#library = state.library;
    this.#before = state.before;
    this.#done = state.done;
  }

  /** Runs the command undisturbed. Throws where it fails. */
  static async prepare(named: WritingCommand, library: string, catalogImage = ''): Promise<FaultTrials> {
    const { command, root, base, before } = await prepareWorld(named, catalogImage);
    const world = path.join(root, 'undisturbed');
    await cp(base, world, { recursive: true });
    const log = path.join(root, 'log');
    expectDone(await runOpmate(command.args, optionsIn(world, library, { LOG: log })));
    const done = await snapshotOf(path.join(world, 'work'));
    const calls = (await readFile(log, 'utf8')).trimEnd().split('\n');
    return new FaultTrials(command, { root, library, before, done, calls });
  }

  /** Calls that a fault of a kind can be met at, from 1. */
  callsFor(kind: FaultKind): number[] {
    const isMet = (call: string): boolean =>
      !kind.startsWith('ENOSPC') || !/^\d+ (?:rename|unlink|rmdir|chmod)/.test(call);
    return this.calls.flatMap((call, i) => (isMet(call) ? [i + 1] : []));
  }

  /** Disturbs the call of a number, runs the command again, and returns what is wrong. */
  async run(call: number, kind: FaultKind): Promise<string[]> {
    const world = path.join(this.#root, `trial-${this.#trials++}`);
    await cp(path.join(this.#root, 'base'), world, { recursive: true });
    const work = path.join(world, 'work');
    const wrong: string[] = [];
    const { args, catalogs = [], keepsProgress = false } = this.command;
    const where = `${kind} at ${this.calls[call - 1]?.replaceAll(path.join(this.#root, 'undisturbed'), '')}`;
    const note = (text: string): void => void wrong.push(`${this.command.name}: ${where}: ${text}`);
    const first = await runOpmate(args, optionsIn(world, this.#library, { AT: String(call), KIND: kind }));
    if (/internal error|^ {4}at /m.test(first.stderr)) note(`stderr: ${first.stderr}`);
    const between = await snapshotOf(work).catch((error: unknown) => ({ unreadable: String(error) }));
    const [before, done] = [this.#before, this.#done].map((one) => without(one, () => false));
    const state = without(between, isLeftover);
    if (first.code === 0 && state !== done) note('ended with 0, and other files than undisturbed');
    const isRefused = kind !== 'kill' && first.code !== 0;
    // What sqlite fails with tells no more.
    const reason = /cannot be opened, or its journal|its directory is read-only/.test(first.stderr)
      ? /^/
      : kind === 'EIO'
        ? /input\/output error|disk i\/o error/i
        : /no space left on device|database or disk is full|disk i\/o error/i;
    if (isRefused && !reason.test(first.stderr)) note(`does not say so: ${first.stderr.trim()}`);
    if (isRefused && !keepsProgress && state !== before && state !== done)
      note(`failed (${first.stderr.trim()}), and left ${differences(between, this.#before)}`);
    for (const name of Object.keys(between).filter((one) => one.endsWith('oci-layout'))) {
      const blobs = path.join(path.dirname(name), 'blobs/sha256/');
      if (isRefused && !Object.keys(between).some((one) => one.startsWith(blobs)))
        note(`left an empty layout, ${path.dirname(name)}`);
    }
    if (kind !== 'kill' && !/^\d+ (?:unlink|rmdir)/.test(this.calls[call - 1] ?? '')) {
      const left = Object.keys(between).filter(isLeftover);
      if (left.length > 0) note(`left ${left.join(', ')}`);
    }
    for (const catalog of catalogs) {
      const isReadable = await listCatalogFiles(path.join(work, catalog)).then(
        (files) => files.length > 0,
        () => false,
      );
      if (isReadable && this.#isBetween(between, catalog))
        note(`${catalog} can be read, and is neither as before nor as it should be`);
    }
    const { asOne } = this.command;
    if (asOne !== undefined && !(`${asOne}/${journalName}` in between) && this.#isBetween(between, asOne))
      note(`${asOne} is neither as before nor as it should be, and has no journal`);
    if (isRefused && without(between, () => false) === before) {
      // As if it had never been run: running it again would show nothing.
      if (wrong.length === 0) await rm(world, { recursive: true, force: true });
      return wrong;
    }
    const again = await runOpmate(args, optionsIn(world));
    const after = await snapshotOf(work);
    if (without(after, (name) => name.endsWith('index.json.lock')) !== done) {
      note(`run again (${again.code}, ${again.stderr.trim()}): ${differences(after, this.#done)}`);
    } else if (again.code !== 0 && state !== done) note(`run again: ${again.code}, ${again.stderr}`);
    const temporary = await readdir(path.join(world, 'temporary'));
    if (temporary.length > 0 && again.code === 0) note(`temporary files: ${temporary.join(', ')}`);
    if (wrong.length === 0) await rm(world, { recursive: true, force: true });
    return wrong;
  }

  /** Tells whether the files of a directory are neither those of before nor those of the undisturbed run. */
  #isBetween(snapshot: Snapshot, directory: string): boolean {
    const [now, before, done] = [snapshot, this.#before, this.#done].map((state) =>
      without(state, (name) => !name.startsWith(`${directory}/`) || isLeftover(name) || state[name] === null),
    );
    return now !== before && now !== done;
  }

  remove(): Promise<void> {
    return rm(this.#root, { recursive: true, force: true });
  }
}

function optionsIn(world: string, library?: string, settings: Record<string, string> = {}) {
  const fault =
    library === undefined
      ? {}
      : {
          LD_PRELOAD: library,
          OPMATE_TEST_FAULT_BELOW: world,
          ...Object.fromEntries(
            Object.entries(settings).map(([name, value]) => [`OPMATE_TEST_FAULT_${name}`, value]),
          ),
        };
  const env = {
    HOME: path.join(world, 'home'),
    TMPDIR: path.join(world, 'temporary'),
    XDG_CACHE_HOME: path.join(world, 'home/cache'),
    ...fault,
  };
  return { cwd: path.join(world, 'work'), env, timeoutMs: 60_000 };
}

function expectDone({ code, stderr }: CommandResult): void {
  if (code !== 0) throw new Error(`ended with ${code}: ${stderr}`);
}

function differences(a: Snapshot, b: Snapshot): string {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((name) => a[name] !== b[name]);
  return names.map((name) => `${name in b ? (name in a ? '~' : '-') : '+'}${name}`).join(' ');
}
