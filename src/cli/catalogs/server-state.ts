import type { ServedCatalogs } from '../../api/served/catalog-statuses.js';
import { listStorages, requireStorage } from '../../api/served/server-storage.js';
import { UsageError } from '../../core/errors.js';
import { type FlagValues, grouped, text } from '../command/flags.js';
import type { CommandContext } from '../context.js';
import { getStorage, getStorages } from '../serve/storage.js';

/** Flags of the commands that query a catalog server. */
export const serverFlags = grouped('Server', {
  catalogs: text('directory', 'manifest directory of the server (default: that of the only server)', {
    excludes: ['storage', 'published', 'url'],
  }),
  storage: text('directory', 'storage directory of the server (default: that of the only server)', {
    excludes: ['published', 'url'],
  }),
  published: text('directory', 'directory of catalog publish', { excludes: ['url'] }),
  url: text('url', 'URL of a server, e.g. http://127.0.0.1:8080, or of a published directory'),
});

type ServerChoice = FlagValues<typeof serverFlags>;

/** Returns the storage directory of the selected server, by default of the only one. */
async function findStorage(context: CommandContext, options: ServerChoice): Promise<string> {
  const { storage, catalogs } = options;
  if (storage !== undefined || catalogs !== undefined) {
    const directory = getStorage(context, { storage, catalogs: catalogs ?? '' });
    await requireStorage(directory);
    return directory;
  }
  const root = getStorages(context);
  const [only, ...others] = await listStorages(root);
  if (others.length === 0) return only;
  throw new UsageError('several catalog servers found', {
    subject: root,
    hint: 'select one with --catalogs, --storage or --url',
  });
}

/** Returns the selected server. Throws UsageError for several, and NOT_FOUND. */
export async function findServed(
  context: CommandContext,
  options: ServerChoice & { externalUrl?: string | undefined },
): Promise<ServedCatalogs> {
  const { url, published, externalUrl } = options;
  if (url !== undefined) return { url };
  if (published !== undefined) return { published, externalUrl };
  return { storage: await findStorage(context, options), externalUrl };
}
