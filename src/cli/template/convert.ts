import { argument, defineCommand } from '../command/declaration.js';
import type { FlagValues } from '../command/flags.js';
import { catalogOutput } from '../command/shared-flags.js';
import { type MetasOptions, isFault, readMetas } from '../../catalog/catalog.js';
import { locate } from '../../catalog/locate.js';
import type { Meta } from '../../catalog/meta.js';
import { type ConvertedType, TemplateConversion } from '../../catalog/template/convert.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { statIfPresent } from '../../files/file-status.js';
import { openSource } from '../../source/source.js';
import { isDatabaseFile } from '../../sqlite/schema/database.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { openInput } from '../opened-input.js';
import { writeAll } from '../output.js';
import { type CommandSession, useSession } from '../session.js';

/** The blobs of a catalog, and the line on which one begins. */
interface OpenedBlobs {
  metas(options: MetasOptions): AsyncGenerator<Meta, void, undefined>;
  lineOf(origin: Meta['origin']): Promise<number | undefined>;
  close(): Promise<void>;
}

const flags = { output: catalogOutput };

/** Declares a command that creates a template of one type. */
function convertCommand(type: ConvertedType, summary: string) {
  return defineCommand({
    summary,
    arguments: [argument('[catalog]', 'file, directory or image (default: stdin)')],
    flags,
    examples: [
      ['Create a template from a catalog directory', `opmate template convert ${type} ./catalog`],
      [
        'Create one from an image, as YAML',
        `opmate template convert ${type} registry.example.com/demo/catalog:v1 -o yaml`,
      ],
    ],
    run: ({ context, args: [reference], options }) => convertTemplate(context, type, reference, options),
  });
}

/** `opmate template convert basic`. */
export const basic = convertCommand('basic', 'create a basic template, which names bundles by image');
/** `opmate template convert substitutes`. */
export const substitutes = convertCommand(
  'substitutes',
  'create a substitutes template, which holds the whole catalog',
);

/**
 * Writes a template that stands for a catalog to stdout. The catalog is a file, standard input, or anything that
 * `render` takes as one.
 */
async function convertTemplate(
  context: CommandContext,
  type: ConvertedType,
  reference: string | undefined,
  options: FlagValues<typeof flags> & GlobalOptions,
): Promise<void> {
  const { output: format } = options;
  await useSession(context, options, async (session) => {
    const opened = await openBlobs(reference ?? '-', context, session);
    const { temporaryDirectory } = session;
    const conversion = new TemplateConversion({ type, format, temporaryDirectory });
    try {
      await addAll(conversion, opened, session);
      session.logger.close();
      await writeAll(context.stdout, conversion.write(context), context.signal);
    } finally {
      await conversion.close();
      await opened.close();
    }
  });
}

async function addAll(
  conversion: TemplateConversion,
  opened: OpenedBlobs,
  session: CommandSession,
): Promise<void> {
  const { logger, signal } = session;
  const faults: OpmateError[] = [];
  const onFault = ({ code, message, file, line, hint }: OpmateError): void => {
    faults.push(new OpmateError(code, `converting: ${message}`, { file, line, hint }));
  };
  for await (const meta of opened.metas({ logger, signal, onFault })) {
    try {
      await conversion.add(meta);
    } catch (error) {
      const located = await locate(opened, meta.origin, error);
      if (!isFault(located)) throw located;
      onFault(located);
    }
  }
  if (faults.length > 0) throw combineErrors(faults);
}

async function openBlobs(
  reference: string,
  context: CommandContext,
  session: CommandSession,
): Promise<OpenedBlobs> {
  if (reference === '-' || (await isStream(reference))) {
    const file = await openInput(reference, context);
    return {
      metas: (options) => readMetas(file, options),
      lineOf: ({ offset }) => file.lineOf(offset),
      close: () => file.close(),
    };
  }
  const source = await openSource(reference, session, { bundles: false, catalogs: true });
  if (source.kind === 'bundle')
    throw new OpmateError('UNSUPPORTED', `${reference}: is a bundle, not a catalog`);
  return {
    metas: (options) => source.catalog.metas(options),
    lineOf: (origin) => source.catalog.lineOf(origin),
    close: () => source.close(),
  };
}

/** Whether a reference is a file of documents. What does not exist and is not named like an image is refused. */
async function isStream(reference: string): Promise<boolean> {
  const found = await statIfPresent(reference);
  if (found === undefined && !/[:@]/.test(reference)) {
    throw new OpmateError('NOT_FOUND', `unable to open input: ${quoteGo(reference)}`, {
      hint: `${reference}: no such file`,
    });
  }
  if (found === undefined || found.isDirectory()) return false;
  return !(found.isFile() && (await isDatabaseFile(reference)));
}
