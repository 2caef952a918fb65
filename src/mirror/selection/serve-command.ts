import path from 'node:path';

/** Command of a catalog image. */
export interface ImageCommand {
  entrypoint: readonly string[] | undefined;
  cmd: readonly string[] | undefined;
}

/** Flag of `opm serve` that only writes a cache. */
const cacheOnlyFlag = '--cache-only';
/** Cache flags of `opm serve`. */
const cacheFlags: ReadonlySet<string> = new Set(['--cache-dir', cacheOnlyFlag, '--cache-enforce-integrity']);
/** Flags of `opm serve` with a value. */
const valueFlags: ReadonlySet<string> = new Set([
  '--cache-dir',
  '--port',
  '-p',
  '--pprof-addr',
  '--termination-log',
  '-t',
]);

/**
 * Returns the command of an image that serves the catalog in `directory`. `opm serve` keeps its flags; cache flags only
 * with `keepsCache`, as it otherwise writes its cache on start. An image without a command stays without.
 */
export function serveCommand(
  { entrypoint, cmd }: ImageCommand,
  directory: string,
  { keepsCache = false }: { keepsCache?: boolean } = {},
): ImageCommand {
  if (!entrypoint?.length && !cmd?.length) return { entrypoint, cmd };
  const dropped = keepsCache ? new Set([cacheOnlyFlag]) : cacheFlags;
  const inCmd = toServing(cmd, directory, dropped);
  if (inCmd !== undefined) return { entrypoint, cmd: inCmd };
  const inEntrypoint = toServing(entrypoint, directory, dropped);
  if (inEntrypoint !== undefined) {
    const flags = getFlags(cmd ?? [], dropped);
    return { entrypoint: inEntrypoint, cmd: flags.length === 0 ? undefined : flags };
  }
  return { entrypoint, cmd: ['serve', directory] };
}

/** Returns the words of a serving command; undefined for other commands. */
function toServing(
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

/** Returns the flags among words, without dropped ones. */
function getFlags(words: readonly string[], dropped: ReadonlySet<string>): string[] {
  return readFlags(words)
    .filter(({ name }) => !dropped.has(name))
    .flatMap(({ words: own }) => own);
}

/** Returns the cache directories of a command, as absolute paths. */
export function getCaches({ entrypoint, cmd }: ImageCommand, workingDirectory: string | undefined): string[] {
  const flags = readFlags([...(entrypoint ?? []), ...(cmd ?? [])]);
  const caches = flags.flatMap(({ name, value }) => (name === '--cache-dir' && value ? [value] : []));
  return caches.map((cache) => path.posix.resolve('/', workingDirectory ?? '', cache));
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
