/** Edits of an index, each a command for a database file (`registry`) and one for an index image (`index`). */
import type { OpmateError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { type AnyCommand, type Argument, argument, defineCommand } from '../command/declaration.js';
import type { FlagValues, Flags } from '../command/flags.js';
import { count } from '../printable.js';
import {
  changeDatabase,
  databaseFlag,
  databaseSummary,
  editFlags,
  getDatabase,
} from '../registry/database.js';
import { changeIndex } from './edit.js';
import type { IndexEdit } from './index-edit.js';
import { fromIndex, indexImageFlags, toolFlags } from './index-image-flags.js';

type Words = readonly (string | undefined)[];

/** Declaration of a command that edits an index. */
interface EditDeclaration<F extends Flags, R> {
  name: string;
  summary: string;
  tool?: 'opm';
  /** Arguments before the database. */
  arguments?: readonly Argument[];
  flags: F;
  /** Purpose of each example, and its arguments and flags but those for the index. */
  examples: readonly [Example, ...Example[]];
  /** Checks flags and arguments. Throws UsageError. */
  plan(options: FlagValues<F>, args: Words): IndexEdit<R>;
  /** Default of `--database`. */
  defaultName?: string;
  /** Finds the database among the arguments; default: the last one. Throws UsageError. */
  read?(args: Words, options: FlagValues<F>): EditedDatabase<FlagValues<F>>;
}

type Example = readonly [purpose: string, words: string];

/** Database of an edit, with the arguments and options that remain for its plan. */
export interface EditedDatabase<O> {
  file: string | undefined;
  args: Words;
  options: O;
}

/** Declares the command of `registry` for an edit; with the database as its last argument. */
export function databaseEdit<F extends Flags, R>(declaration: EditDeclaration<F, R>): AnyCommand {
  const declared: EditDeclaration<Flags, unknown> = declaration;
  const { name, examples, flags, plan, defaultName, read = readLast, ...edit } = declared;
  const toLine = (words: string, output = ''): string =>
    ['opmate registry', name, words, 'index.db', output].filter(Boolean).join(' ');
  return defineCommand({
    ...edit,
    arguments: [...(edit.arguments ?? []), argument('[database]', databaseSummary)],
    flags: { ...flags, ...editFlags, database: databaseFlag(defaultName) },
    examples: [
      ...examples.map(([purpose, words]) => [purpose, toLine(words)] as const),
      ['Write a new index instead', toLine(examples[0][1], '--output-db new.db')],
    ],
    async run({ context, args: words, options: values }) {
      const { file, args, options } = read(words, values);
      const database = getDatabase(file, values.database, defaultName);
      await changeDatabase(context, values, database, plan(options, args));
    },
  });
}

function readLast<O>(args: Words, options: O): EditedDatabase<O> {
  return { file: args.at(-1), args: args.slice(0, -1), options };
}

const exampleIndex = 'registry.example.com/demo/index';

/** Declares the command of `index` for an edit. */
export function imageEdit<F extends Flags, R>(
  declaration: EditDeclaration<F, R>,
  tools: Flags = toolFlags,
): AnyCommand {
  const declared: EditDeclaration<Flags, unknown> = declaration;
  const { name, examples, flags, plan, ...edit } = declared;
  const toLine = (words: string, output: string): string =>
    ['opmate index', name, words, `-f ${exampleIndex}:v1 ${output} -i scratch`].filter(Boolean).join(' ');
  return defineCommand({
    ...edit,
    flags: { ...flags, ...tools, fromIndex: fromIndex('index image to edit'), ...indexImageFlags },
    examples: [
      ...examples.map(([purpose, words]) => [purpose, toLine(words, `-t ${exampleIndex}:v2`)] as const),
      ['Save the image to a file', toLine(examples[0][1], '--save index.tar')],
    ],
    run: ({ context, args, options }) => changeIndex(context, options, () => plan(options, args)),
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
  for (const { message, hint } of failures) {
    logger.log('warn', `skipped because of --permissive: ${message}`, hint === undefined ? {} : { hint });
  }
}
