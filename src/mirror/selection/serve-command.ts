import path from 'node:path';

/** How a catalog image is started. */
export interface ImageCommand {
  entrypoint: readonly string[] | undefined;
  cmd: readonly string[] | undefined;
}

/** Flags of `opm serve` that speak of its cache. */
const cacheFlags: ReadonlySet<string> = new Set(['--cache-dir', '--cache-only', '--cache-enforce-integrity']);
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
 * The command of an image that serves the catalog in `directory` and makes its cache when it starts. A command that
 * is `opm serve` already keeps its other flags; an image that starts nothing goes on doing so.
 */
export function serveCommand({ entrypoint, cmd }: ImageCommand, directory: string): ImageCommand {
  if (!entrypoint?.length && !cmd?.length) return { entrypoint, cmd };
  const inCmd = serving(cmd, directory);
  if (inCmd !== undefined) return { entrypoint, cmd: inCmd };
  const inEntrypoint = serving(entrypoint, directory);
  if (inEntrypoint !== undefined) {
    const flags = flagsOf(cmd ?? []);
    return { entrypoint: inEntrypoint, cmd: flags.length === 0 ? undefined : flags };
  }
  return { entrypoint, cmd: ['serve', directory] };
}

/** The words of a command that serves; undefined for one that does something else. */
function serving(words: readonly string[] | undefined, directory: string): string[] | undefined {
  const at = words?.indexOf('serve') ?? -1;
  if (words === undefined || at < 0) return undefined;
  // `opm registry serve` is the command for databases.
  const isDatabase = words[at - 1] === 'registry';
  const program = words.slice(0, isDatabase ? at - 1 : at);
  return [...program, 'serve', directory, ...(isDatabase ? [] : flagsOf(words.slice(at + 1)))];
}

/** The flags among words, without those of the cache. */
function flagsOf(words: readonly string[]): string[] {
  return readFlags(words)
    .filter(({ name }) => !cacheFlags.has(name))
    .flatMap(({ words: own }) => own);
}

/** Where the caches are that a command names, as absolute paths. */
export function cachesOf({ entrypoint, cmd }: ImageCommand, workingDirectory: string | undefined): string[] {
  const flags = readFlags([...(entrypoint ?? []), ...(cmd ?? [])]);
  const places = flags.flatMap(({ name, value }) => (name === '--cache-dir' && value ? [value] : []));
  return places.map((place) => path.posix.resolve('/', workingDirectory ?? '', place));
}

function readFlags(words: readonly string[]): { name: string; value: string; words: string[] }[] {
  const flags: { name: string; value: string; words: string[] }[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (!word.startsWith('-')) continue;
    const equals = word.indexOf('=');
    if (equals > 0) {
      flags.push({ name: word.slice(0, equals), value: word.slice(equals + 1), words: [word] });
    } else if (valueFlags.has(word) && at + 1 < words.length) {
      const value = words[++at] as string;
      flags.push({ name: word, value, words: [word, value] });
    } else flags.push({ name: word, value: '', words: [word] });
  }
  return flags;
}
