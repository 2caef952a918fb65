import { diagnosticsFrom } from '../../core/diagnostics-error.js';
import { withSubject } from '../../core/diagnostic.js';
/** Edits of an index, each a command for a database file (`registry`) and one for an index image (`index`). */
import {
  type ChangeReports,
  type IndexChange,
  type IndexChangeKind,
  editIndex,
} from '../../api/indexes/edit-index.js';
import { editIndexImage } from '../../api/indexes/index-image.js';
import type { OpmateError } from '../../core/errors.js';
import { type Logger, logDiagnostic } from '../../core/log.js';
import { type AnyCommand, type Argument, argument, defineCommand } from '../command/declaration.js';
import { type FlagValues, type Flags, text, required } from '../command/flags.js';
import { count } from '../printable.js';
import { databaseFlag, databaseSummary, editFlags, getDatabase } from '../registry/database.js';
import { indexImageFlags, printIndexImage, toolFlags } from './edit.js';

type Words = readonly (string | undefined)[];

/** Change of an index in one transaction. */
export interface IndexEdit<K extends IndexChangeKind> {
  change: IndexChange<K>;
  /** Logs the result; `name` is that of the database or index. */
  report(logger: Logger, name: string, result: ChangeReports[K]): void;
}

/** Declaration of a command that edits an index. */
interface EditDeclaration<F extends Flags, K extends IndexChangeKind> {
  name: string;
  summary: string;
  tool?: 'opm';
  arguments?: readonly Argument[];
  flags: F;
  /** Purpose of each example, and its arguments and flags but those for the index. */
  examples: Readonly<Record<string, string>>;
  /** Checks flags and arguments. Throws UsageError. */
  plan(options: FlagValues<F>, args: Words): IndexEdit<K>;
}

/** Additional declaration for a database file, which is the last argument. */
interface DatabaseTraits<F extends Flags> {
  /** Default of `--database`. */
  defaultName?: string;
  /** Finds the database among the arguments; default: the last one. Throws UsageError. */
  read?(args: Words, options: FlagValues<F>): EditedDatabase<FlagValues<F>>;
}

/** Database of an edit, with the arguments and options that remain for its plan. */
export interface EditedDatabase<O> {
  file: string | undefined;
  args: Words;
  options: O;
}

/** Declares both commands of an edit; `registry` and `index` are what only one of them has. */
export function editCommands<F extends Flags, K extends IndexChangeKind>(
  declaration: Omit<EditDeclaration<F, K>, 'summary'>,
  registry: Pick<EditDeclaration<F, K>, 'summary' | 'arguments'> & DatabaseTraits<F>,
  index: Pick<EditDeclaration<F, K>, 'summary'> & { tools?: Flags },
): { registryCommand: AnyCommand; command: AnyCommand } {
  return {
    registryCommand: databaseEdit({ ...declaration, ...registry }),
    command: imageEdit({ ...declaration, ...index }),
  };
}

/** Declares the command of `registry` for an edit, which is one transaction. */
export function databaseEdit<F extends Flags, K extends IndexChangeKind>(
  declaration: EditDeclaration<F, K> & DatabaseTraits<F>,
): AnyCommand {
  const declared: EditDeclaration<Flags, K> & DatabaseTraits<Flags> = declaration;
  const { name, examples, flags, plan, defaultName, read = readLast, ...edit } = declared;
  const toLine = (words: string, output = ''): string =>
    ['opmate registry', name, words, 'index.db', output].filter(Boolean).join(' ');
  const [first = ''] = Object.values(examples);
  const lines = Object.entries(examples).map(([key, words]) => [key, toLine(words)]);
  return defineCommand({
    ...edit,
    arguments: [...(edit.arguments ?? []), argument('[database]', databaseSummary)],
    flags: { ...flags, ...editFlags, database: databaseFlag(defaultName) },
    examples: {
      ...Object.fromEntries(lines),
      'Write a new index instead': toLine(first, '--output-db new.db'),
    },
    async runInSession({ args: words, options: values, session }) {
      const { file, args, options } = read(words, values);
      const database = getDatabase(file, values.database, defaultName);
      const { change, report } = plan(options, args);
      const { outputDb } = values;
      const result = await editIndex(database, change, session, { outputFile: outputDb, vacuum: true });
      report(session.logger, outputDb ?? database, result);
    },
  });
}

function readLast<O>(args: Words, options: O): EditedDatabase<O> {
  return { file: args.at(-1), args: args.slice(0, -1), options };
}

const exampleIndex = 'registry.example.com/demo/index';

/** Declares the command of `index` for an edit. `tools` are its flags for container engines; default: all. */
export function imageEdit<F extends Flags, K extends IndexChangeKind>(
  declaration: EditDeclaration<F, K> & { tools?: Flags },
): AnyCommand {
  const declared: EditDeclaration<Flags, K> & { tools?: Flags } = declaration;
  const { name, examples, flags, plan, tools = toolFlags, ...edit } = declared;
  const toLine = (words: string, output: string): string =>
    ['opmate index', name, words, `-f ${exampleIndex}:v1 ${output} -i scratch`].filter(Boolean).join(' ');
  const [first = ''] = Object.values(examples);
  const lines = Object.entries(examples).map(([key, words]) => [key, toLine(words, `-t ${exampleIndex}:v2`)]);
  return defineCommand({
    ...edit,
    flags: {
      ...flags,
      ...tools,
      fromIndex: required(text('image', 'index image to edit', { short: 'f', group: 'Input' })),
      ...indexImageFlags,
    },
    commonFlags: [...Object.keys(flags), 'fromIndex', 'tag', 'save', 'binaryImage'],
    examples: {
      ...Object.fromEntries(lines),
      'Save the image to a file': toLine(first, '--save index.tar'),
    },
    async runInSession({ context, args, options, session }) {
      const { change, report } = plan(options, args);
      await printIndexImage(
        context,
        options,
        session,
        (image, onEdited) => editIndexImage(change, session, { ...image, onEdited }),
        report,
      );
    },
  });
}

/** Returns at most ten names, and the number of the others. */
export function formatNames(names: readonly string[]): string {
  return names.slice(0, 10).join(', ') + (names.length > 10 ? ` and ${names.length - 10} more` : '');
}

/** Logs packages and bundles that an edit removed from an index. */
export function logRemoved(
  logger: Logger,
  name: string,
  { packages = [], bundles }: { packages?: readonly string[]; bundles: readonly string[] },
): void {
  let text = 'nothing to remove';
  if (packages.length > 0) {
    text = `removed ${count(packages.length, 'package')} with ${count(bundles.length, 'bundle')}: ${formatNames(packages)}`;
  } else if (bundles.length > 0) {
    text = `removed ${count(bundles.length, 'bundle')}: ${formatNames(bundles)}`;
  }
  logger.log('info', `${name}: ${text}`);
}

/** Logs what `--permissive` skipped. */
export function logSkipped(logger: Logger, failures: readonly OpmateError[]): void {
  for (const diagnostic of failures.flatMap(diagnosticsFrom)) {
    logDiagnostic(
      logger,
      withSubject({ ...diagnostic, severity: 'warning' }, 'skipped because of --permissive'),
    );
  }
}
