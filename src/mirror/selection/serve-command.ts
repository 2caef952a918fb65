import path from 'node:path';

/** How a catalog image is started. */
export interface ImageCommand {
  entrypoint: readonly string[] | undefined;
  cmd: readonly string[] | undefined;
}

/** The flag of `opm serve` that makes a cache and serves nothing. */
const cacheOnlyFlag = '--cache-only';
/** All that speak of its cache. */
const cacheFlags: ReadonlySet<string> = new Set(['--cache-dir', cacheOnlyFlag, '--cache-enforce-integrity']);
/** Flags of `opm serve` whose value may be the next word. */
const valueFlags: ReadonlySet<string> = new Set([
  '--cache-dir',
  '--port',
  '-p',
  '--pprof-addr',
  '--termination-log',
  '-t',
]);

/**
 * The command of an image that serves the catalog in `directory`. A command that is `opm serve` already keeps its
 * flags; those of a cache only with `keepsCache`, without which it makes its cache when it starts. An image that starts
 * nothing goes on doing so.
 */
export function serveCommand(
  { entrypoint, cmd }: ImageCommand,
  directory: string,
  { keepsCache = false }: { keepsCache?: boolean } = {},
): ImageCommand {
  if (!entrypoint?.length && !cmd?.length) return { entrypoint, cmd };
  const dropped = keepsCache ? new Set([cacheOnlyFlag]) : cacheFlags;
  const inCmd = serving(cmd, directory, dropped);
  if (inCmd !== undefined) return { entrypoint, cmd: inCmd };
  const inEntrypoint = serving(entrypoint, directory, dropped);
  if (inEntrypoint !== undefined) {
    const flags = getFlags(cmd ?? [], dropped);
    return { entrypoint: inEntrypoint, cmd: flags.length === 0 ? undefined : flags };
  }
  return { entrypoint, cmd: ['serve', directory] };
}

/** The words of a command that serves; undefined for one that does something else. */
function serving(
  words: readonly string[] | undefined,
  directory: string,
  dropped: ReadonlySet<string>,
): string[] | undefined {
  const position = words?.indexOf('serve') ?? -1;
  if (words === undefined || position < 0) return undefined;
  // `opm registry serve` is the command for databases.
  const isDatabase = words[position - 1] === 'registry';
  const program = words.slice(0, isDatabase ? position - 1 : position);
  return [
    ...program,
    'serve',
    directory,
    ...(isDatabase ? [] : getFlags(words.slice(position + 1), dropped)),
  ];
}

/** The flags among words, without those that are dropped. */
function getFlags(words: readonly string[], dropped: ReadonlySet<string>): string[] {
  return readFlags(words)
    .filter(({ name }) => !dropped.has(name))
    .flatMap(({ words: own }) => own);
}

/** Where the caches are that a command names, as absolute paths. */
export function getCaches({ entrypoint, cmd }: ImageCommand, workingDirectory: string | undefined): string[] {
  const flags = readFlags([...(entrypoint ?? []), ...(cmd ?? [])]);
  const places = flags.flatMap(({ name, value }) => (name === '--cache-dir' && value ? [value] : []));
  return places.map((place) => path.posix.resolve('/', workingDirectory ?? '', place));
}

function readFlags(words: readonly string[]): { name: string; value: string; words: string[] }[] {
  const flags: { name: string; value: string; words: string[] }[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] as string;
    if (!word.startsWith('-')) continue;
    const equals = word.indexOf('=');
    if (equals > 0) {
      flags.push({ name: word.slice(0, equals), value: word.slice(equals + 1), words: [word] });
    } else if (valueFlags.has(word) && index + 1 < words.length) {
      const value = words[++index] as string;
      flags.push({ name: word, value, words: [word, value] });
    } else flags.push({ name: word, value: '', words: [word] });
  }
  return flags;
}
