import { Argument, Command, CommanderError, Option } from 'commander';
import { UsageError } from '../core/errors.js';
import { addAlphaBundleCommands, addBundleCommands } from './bundle/commands.js';
import { addCatalogCommands } from './catalog/commands.js';
import type { CommandContext, GlobalOptions } from './context.js';
import { exitCodes } from './exit-codes.js';
import { commandPath, footerOf, printHelp, unknownCommand } from './help.js';
import { addIndexCommands } from './index/commands.js';
import {
  addGlobalOptions,
  byteSize,
  catalogForms,
  collect,
  milliseconds,
  outputFormatOf,
  reportFormatOption,
  withChoices,
} from './options.js';
import { writeAll } from './output.js';
import { addArchiveCommands, addMirrorCommands } from './mirror/commands.js';
import { addCatalogsCommands } from './serve/catalogs-commands.js';
import { addProbeCommand } from './root/probe-command.js';
import { addRegistryCommands } from './registry/commands.js';
import type { Runner } from './runner.js';
import { addConnectionOptions, addServeCommands } from './serve/commands.js';
import { addTemplateCommands } from './template/commands.js';
import { addViewCommand } from './root/view-command.js';

/** What `run` must know even when a command fails. */
export interface RunState {
  debug: boolean;
  logFormat: 'text' | 'json';
  /** Exit code of wrong usage: 2, or 1 in commands that `opm` has too. */
  usageCode: number;
}

/**
 * Runs the command that the arguments name and returns its exit code. The command tree is a declaration
 * only: what a command needs is imported when it runs. Throws what the command throws, and UsageError.
 */
export async function runProgram(
  args: readonly string[],
  context: CommandContext,
  name: string,
  state: RunState,
): Promise<number> {
  let exitCode: number = exitCodes.done;
  const shown: string[] = [];
  const program = createProgram(context, name, {
    async run(command, action) {
      const options = command.optsWithGlobals<GlobalOptions>();
      checkGlobalOptions(options);
      refuseEmptyPaths(command);
      exitCode = (await action(options)) ?? exitCodes.done;
    },
    starts(command) {
      const options = command.optsWithGlobals<GlobalOptions>();
      state.debug = options.debug === true;
      state.logFormat = options.logFormat ?? 'text';
      const last = command.commands.length > 0 ? named : command;
      state.usageCode = isOpmCommand(last) ? exitCodes.failed : exitCodes.usage;
    },
    say: (text) => void shown.push(text),
  });
  const named = namedCommand(program, args);
  if (isOpmCommand(named)) state.usageCode = exitCodes.failed;
  try {
    const [first, ...words] = args;
    if (first === 'help' && words.every((word) => !word.startsWith('-'))) {
      state.usageCode = exitCodes.usage;
      printHelp(program, words, (text) => void shown.push(text));
      await writeAll(context.stdout, shown.join(''));
      return exitCode;
    }
    // What people try first, and `opm` does not have.
    const asked = args[0] === '--version' ? ['version', ...args.slice(1)] : args;
    await program.parseAsync([...asked], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // A group of commands without a command shows its help, as opm does; commander takes it for a mistake.
    if (error.exitCode === 0 || error.code === 'commander.help') {
      await writeAll(context.stdout, shown.join(''));
      return exitCodes.done;
    }
    state.debug = program.opts<GlobalOptions>().debug === true;
    const word = named.args[0];
    if (error.code === 'commander.unknownCommand' && word !== undefined) throw unknownCommand(named, word);
    throw new UsageError(error.message.replace(/^error: /, ''), { hint: `see ${commandPath(named)} --help` });
  }
  return exitCode;
}

/** Commands of `opm`, `oc` and `oc-mirror`, and groups of them; to `probe`, 2 means something else. */
const opmCommands: ReadonlySet<string> = new Set([
  'alpha',
  'catalog',
  'generate',
  'index',
  'init',
  'migrate',
  'mirror',
  'probe',
  'registry',
  'render',
  'serve',
  'validate',
  'version',
]);

/** What opmate has below the groups of `opm` in addition. */
const ownCommands: ReadonlySet<string> = new Set([
  'catalog add',
  'catalog build',
  'catalog deprecate',
  'catalog diff',
  'catalog doctor',
  'catalog filter',
  'catalog prune',
  'catalog remove',
  'index build',
  'index delete',
  'index delete-latest',
  'mirror diff',
  'mirror plan',
  'mirror status',
  'registry build',
  'registry bundles',
  'registry create',
  'registry delete',
  'registry delete-latest',
  'registry images',
  'registry init',
  'registry migrate',
]);

/** Whether a command is one of those that `opm` has, whose exit codes are 0 and 1. */
function isOpmCommand(command: Command): boolean {
  if (ownCommands.has(`${command.parent?.name()} ${command.name()}`)) return false;
  for (let at: Command | null = command; at !== null; at = at.parent) {
    if (at.parent?.parent === null && opmCommands.has(at.name())) return true;
  }
  return false;
}

/** The command that the arguments name, as far as they do. */
function namedCommand(program: Command, args: readonly string[]): Command {
  let at = program;
  for (const arg of args) {
    const next = at.commands.find((command) => command.name() === arg || command.aliases().includes(arg));
    if (next !== undefined) at = next;
  }
  return at;
}

function checkGlobalOptions(options: GlobalOptions): void {
  const { skipTls, skipTlsVerify, useHttp } = options;
  if (skipTls && useHttp)
    throw new UsageError('invalid flag combination: cannot use --use-http with --skip-tls');
  if (skipTls && skipTlsVerify) {
    throw new UsageError('invalid flag combination: cannot use --skip-tls-verify with --skip-tls');
  }
  if (skipTlsVerify && useHttp) {
    throw new UsageError('invalid flag combination: --use-http and --skip-tls-verify cannot both be true');
  }
}

/** Options where an empty path means none, as in `opm`, or that their command checks in words of its own. */
const emptyPathOptions: ReadonlySet<string> = new Set([
  'cacheDir',
  'database',
  'description',
  'icon',
  'outDockerfile',
  'terminationLog',
]);

/** Refuses an empty path, which would otherwise name the working directory: an unset variable of a script. */
function refuseEmptyPaths(command: Command): void {
  for (let at: Command | null = command; at !== null; at = at.parent) {
    for (const option of at.options) {
      const name = option.attributeName();
      if (!/<(?:file|directory|path|archive)>/.test(option.flags) || emptyPathOptions.has(name)) continue;
      const value: unknown = at.getOptionValue(name);
      if (value !== '' && !(Array.isArray(value) && value.includes(''))) continue;
      throw new UsageError(`${option.long ?? option.flags}: expected a path, got ""`, {
        hint: 'name a path, or leave the option out',
      });
    }
  }
}

/** The whole command tree, with `runner` behind its actions. */
export function createProgram(context: CommandContext, name: string, runner: Runner): Command {
  const showsAlpha = context.environment['HELP_ALPHA'] === 'true';
  const program = new Command(name);
  program
    .description('Render, check, edit, mirror and serve Kubernetes operator catalogs')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => runner.say(text),
      writeErr: (text) => runner.say(text),
    })
    .addHelpText('afterAll', ({ command }) => footerOf(command))
    .hook('preSubcommand', (_parent, command) => runner.starts(command));
  addGlobalOptions(program);
  program.hook('preAction', (_parent, command) => runner.starts(command));

  const migrateLevel = (): Option =>
    withChoices(new Option('--migrate-level <level>', 'run migrations up to this level'), [
      'none',
      'bundle-object-to-csv-metadata',
      'all',
    ]);

  program
    .command('render')
    .description('render catalogs and bundles from any source as one catalog')
    .argument(
      '<reference...>',
      'bundle or catalog: directory, image, oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE, sqlite index, ' +
        'https://HOST/catalogs/NAME, https://HOST/ARCHIVE.tgz or git+https://HOST/REPOSITORY[#REF[:DIRECTORY]]',
    )
    .addOption(outputFormatOf('json', 'yaml').default('json'))
    .addOption(migrateLevel())
    .option('--migrate', 'run all migrations')
    .addOption(
      new Option(
        '--alpha-image-ref-template <template>',
        'image reference template for bundles from directories',
      ).hideHelp(!showsAlpha),
    )
    .action((references: string[], _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./root/render.js')).render(context, references, options),
      ),
    );

  program
    .command('validate')
    .description('check a catalog and report every problem')
    .argument('<directory>', `catalog: ${catalogForms}`)
    .addOption(reportFormatOption())
    .action((directory: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./root/validate.js')).validate(context, directory, options),
      ),
    );

  program
    .command('init')
    .description('write an olm.package blob for a new package')
    .argument('<package>')
    .option('-c, --default-channel <channel>', 'default channel of the package')
    .option('-i, --icon <file>', 'image file to embed as the icon')
    .option('-d, --description <file>', 'file whose content becomes the description')
    .addOption(outputFormatOf('json', 'yaml').default('json'))
    .action((packageName: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./root/init.js')).init(context, packageName, options),
      ),
    );

  program
    .command('migrate')
    .description('write a catalog to a new directory, one file per package')
    .argument('<reference>', `catalog: ${catalogForms}`)
    .argument('<directory>', 'new or empty output directory')
    .addOption(outputFormatOf('json', 'yaml').default('json'))
    .addOption(migrateLevel())
    .action((reference: string, directory: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./root/migrate.js')).migrate(context, reference, directory, options),
      ),
    );

  const generate = program.command('generate').description('generate files for a catalog');
  generate
    .command('dockerfile')
    .description('write a Dockerfile next to a catalog directory')
    .argument('<directory>')
    .option('-i, --base-image <image>', 'image to build on')
    .option('-b, --builder-image <image>', 'image to build the serve cache with')
    .addOption(new Option('--binary-image <image>', 'the old name of --base-image').hideHelp())
    .option('-l, --extra-labels <key=value>', 'additional labels, repeatable or comma-separated', collect)
    .action((directory: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./root/generate-dockerfile.js')).generateDockerfile(context, directory, options),
      ),
    );

  const alpha = program.command('alpha', { hidden: !showsAlpha }).description('alpha commands of opm');
  for (const parent of [program, alpha]) addListCommands(parent, context, runner);
  addGraphCommand(program, 'graph', context, runner);
  addGraphCommand(alpha, 'render-graph', context, runner);

  addRegistryCommands(program, context, runner);
  addIndexCommands(program, context, runner);
  const catalog = program.command('catalog').description('edit, check, compare, filter and build catalogs');
  addCatalogCommands(catalog, context, runner);
  addMirrorCommands(program, catalog, context, runner);
  addArchiveCommands(program, context, runner);
  addServeCommands(program, context, runner);
  addProbeCommand(program, context, runner);
  addViewCommand(program, context, runner);
  addCatalogsCommands(program, context, runner);
  addBundleCommands(program, context, runner);
  addAlphaBundleCommands(alpha, context, runner);
  addTemplateCommands(program, alpha, context, runner);
  addOciCommands(program, context, runner);

  program
    .command('version')
    .description('print the version')
    .argument('[ignored...]')
    .addOption(outputFormatOf('json', 'yaml'))
    .action((_ignored: string[], _options, command: Command) =>
      runner.run(command, async (options) => (await import('./root/version.js')).version(context, options)),
    );

  program
    .command('completion')
    .description('print a completion script for a shell')
    .addArgument(withChoices(new Argument('<shell>', 'shell'), ['bash', 'zsh', 'fish']))
    .action((shell: string, _options, command: Command) =>
      runner.run(command, async () =>
        (await import('./completion/completion.js')).completion(context, shell, program),
      ),
    );
  program
    .command('__complete', { hidden: true })
    .argument('[word...]')
    .action((words: string[], _options, command: Command) =>
      runner.run(command, async () =>
        (await import('./completion/complete.js')).complete(context, words, program),
      ),
    );
  return program;
}

function addListCommands(parent: Command, context: CommandContext, runner: Runner): void {
  const list = parent.command('list').description('list packages, channels or bundles of a catalog');
  for (const noun of ['packages', 'channels', 'bundles'] as const) {
    const command = list
      .command(noun)
      .description(`list the ${noun} of a catalog`)
      .argument('<reference>', `catalog: ${catalogForms}`);
    if (noun !== 'packages') command.argument('[package]', 'show only this package');
    command.action((reference: string, ...rest: unknown[]) => {
      const packageName = typeof rest[0] === 'string' ? rest[0] : undefined;
      return runner.run(command, async (options) =>
        (await import('./root/list.js')).list(context, noun, reference, packageName, options),
      );
    });
  }
}

function addGraphCommand(parent: Command, name: string, context: CommandContext, runner: Runner): void {
  const command = parent
    .command(name)
    .description('draw the upgrade graph as Mermaid text')
    .argument('<reference...>', 'catalog or bundle: directory or image')
    .option('--minimum-edge <bundle>', 'omit bundles older than this one')
    .option('-p, --package-name <package>', 'show only this package')
    .option('--draw-v0-semantics', 'mark upgrades that OLM v0 cannot perform')
    .action((references: string[]) =>
      runner.run(command, async (options) =>
        (await import('./root/graph.js')).graph(context, references, options, {
          drawsAllRanges: name === 'render-graph',
        }),
      ),
    );
}

function addOciCommands(program: Command, context: CommandContext, runner: Runner): void {
  const oci = program.command('oci').description('work with images, layouts and registries');
  const serve = oci
    .command('serve')
    .description('serve a layout directory, or a mirror archive read-only, as a registry')
    .argument('<directory>', 'layout directory, created if missing, or mirror archive')
    .option('-p, --port <port>', 'port to listen on; 0 selects a free one', '5000')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--htpasswd <file>', 'require users of this htpasswd file (bcrypt)')
    .option('--insecure-listen', 'allow non-loopback addresses without --htpasswd')
    .option('--read-only', 'refuse pushes and deletions')
    .addOption(
      new Option('--max-size <size>', 'maximum size of all blobs and uploads, e.g. 50G').argParser(byteSize),
    )
    .option('--tls-cert <file>', 'TLS certificate; reloaded when it changes')
    .option('--tls-key <file>', 'TLS private key')
    .option('--archive-base <directory>', 'base archive of the archive, repeatable', collect)
    .option('--id <digest>', 'require this archive ID')
    .option('--verify-key <file>', 'require a signature by this public key');
  addConnectionOptions(serve).action((directory: string, _options, command: Command) =>
    runner.run(command, async (options) =>
      (await import('./oci/serve.js')).ociServe(context, directory, options),
    ),
  );
  oci
    .command('gc')
    .description('remove unreferenced blobs of a layout directory; safe while oci serve serves it')
    .argument('<directory>', 'layout directory')
    .option('--dry-run', 'print what would be removed without removing it')
    .addOption(
      new Option(
        '--older-than <duration>',
        'minimum age of removed blobs, which may belong to a running push (default: 1h)',
      ).argParser(milliseconds),
    )
    .action((directory: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./oci/gc.js')).ociGc(context, directory, options),
      ),
    );
  oci
    .command('copy')
    .description('copy an image between registries, layouts and archives')
    .argument('<source>', 'image in a registry, layout or archive')
    .argument('<target>', 'registry reference or oci:DIR[:TAG]')
    .option('--referrers', 'also copy referrers such as signatures')
    .action((source: string, target: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./oci/copy.js')).ociCopy(context, source, target, options),
      ),
    );
  oci
    .command('inspect')
    .description('show digest, platform, labels and layers of an image')
    .argument('<reference>')
    .addOption(outputFormatOf('json', 'yaml').default('json'))
    .option('--raw', 'print the raw manifest')
    .option('--tags', 'list the tags of the repository')
    .action((reference: string, _options, command: Command) =>
      runner.run(command, async (options) =>
        (await import('./oci/inspect.js')).ociInspect(context, reference, options),
      ),
    );
}
