import { type Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { byteSize, itemsOf, milliseconds, positiveInteger } from './command/values.js';
import { UsageError } from '../core/errors.js';
import { reportFormats } from './reports/formats.js';

const logLevels = ['error', 'warn', 'info', 'debug'];

/** `trace` is what oc-mirror calls the last one. */
function logLevel(text: string): string {
  if (text === 'trace') return 'debug';
  if (logLevels.includes(text)) return text;
  throw new InvalidArgumentError(`Allowed choices are ${logLevels.join(', ')}.`);
}

/** Takes a repeatable option. */
export function collect(value: string, previous: string[] | undefined): string[] {
  return [...(previous ?? []), value];
}

/** What a catalog of the command line may be, for help. */
export const catalogForms =
  'directory, image, sqlite index, or URL of a served catalog, archive or git repository';

/** The options of every command. */
export function addGlobalOptions(program: Command): void {
  const add = (option: Option): Command => program.addOption(option);
  add(new Option('--debug', 'show debug messages, causes and stack traces'));
  add(new Option('-v, --verbose', 'show debug messages'));
  add(
    new Option('--log-level <level>', 'minimum log level (default: info)')
      .choices(logLevels)
      .argParser(logLevel),
  );
  add(new Option('--log-format <format>', 'log format').choices(['text', 'json']));
  add(new Option('--authfile <file>', 'credentials file; takes precedence over all others'));
  add(
    new Option('--platform <os/arch>', 'platform to select from multi-platform images (default: the host)'),
  );
  add(new Option('--use-http', 'use plain HTTP for registries'));
  add(new Option('--skip-tls-verify', 'do not verify registry certificates'));
  add(new Option('--skip-tls', 'the old name of --use-http').hideHelp());
  add(new Option('--ca-file <file>', 'additional certificate authorities, as a PEM file'));
  add(new Option('--cert-dir <directory>', 'additional directory of <host:port>/*.crt, *.cert and *.key'));
  add(
    new Option(
      '--allow-private-host <host>',
      'allow redirects and token servers at this private host, repeatable',
    ).argParser(collect),
  );
  add(
    new Option('--retry-timeout <duration>', 'total retry time of a request (default: 60s)').argParser(
      milliseconds,
    ),
  );
  add(
    new Option('--follow-links', 'follow symbolic links that leave a bundle, catalog or manifest directory'),
  );
  add(
    new Option('--max-entries <count>', 'maximum number of entries in an image (default: 200000)').argParser(
      positiveInteger,
    ),
  );
  add(
    new Option('--max-unpacked-size <size>', 'maximum unpacked size of an image (default: 4G)').argParser(
      byteSize,
    ),
  );
  add(
    new Option('--max-ratio <ratio>', 'maximum decompression ratio above 64 MiB (default: 200)').argParser(
      positiveInteger,
    ),
  );
}

/** `-o, --output` with these formats. */
export function outputFormatOf(...formats: string[]): Option {
  return withChoices(new Option('-o, --output <format>', 'output format'), formats);
}

/** Returns the option of commands that report findings. */
export function reportFormatOption(): Option {
  return outputFormatOf(...reportFormats);
}

/** Names the values for help and completion; commands check them themselves, in the words of `opm`. */
export function withChoices<T extends Option | Argument>(subject: T, choices: string[]): T {
  subject.argChoices = choices;
  return subject;
}

/** Takes a repeatable option with a list of at least one item: an empty variable of a script is not "all" or "none". */
export function separated(value: string, previous: string[] | undefined): string[] {
  const items = itemsOf(value);
  if (items.length === 0) throw new InvalidArgumentError('expected at least one item');
  return [...(previous ?? []), ...items];
}

/** Takes a repeatable option whose list may be empty, to say none. */
export function separatedOrNone(value: string, previous: string[] | undefined): string[] {
  return [...(previous ?? []), ...itemsOf(value)];
}

/** The value of an option that a command needs. Throws UsageError, in the words of `opm`, where it was not given. */
export function requireFlag<T>(value: T | undefined, name: string): T {
  if (value !== undefined && value !== '') return value;
  throw new UsageError(`required flag(s) "${name}" not set`);
}

/** An option that help and completion do not show. */
export function hiddenOption(command: Command, flags: string, description: string): void {
  command.addOption(new Option(flags, description).hideHelp());
}

/** An option without value that also takes `=true` and `=false`, as in Go programs; see `booleanOf`. */
export function booleanFlag(
  command: Command,
  name: string,
  description: string,
  { isHidden = false }: { isHidden?: boolean } = {},
): void {
  command.addOption(new Option(`--${name}`, description).hideHelp(isHidden));
  for (const value of ['true', 'false']) command.addOption(new Option(`--${name}=${value}`).hideHelp());
}

/** Whether a `booleanFlag` is set; `otherwise` where it is not given. */
export function booleanOf(options: object, name: string, otherwise = false): boolean {
  const given = options as Readonly<Record<string, unknown>>;
  if (given[`${name}=false`] === true) return false;
  return given[name] === true || given[`${name}=true`] === true || otherwise;
}
