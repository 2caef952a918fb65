import { catalogForms } from '../../api/open-catalog.js';
import { publishCatalog } from '../../api/serve/publish-catalog.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, grouped, parsed, text, required } from '../command/flags.js';
import { duration } from '../command/values.js';
import { reportEnding } from '../ending.js';
import { count } from '../printable.js';
import { writeAll } from '../output.js';

const defaultPruneMs = 60 * 60 * 1000;

/** `opmate catalog publish`; prints the digest of all blobs. */
export const command = defineCommand({
  summary: 'write a catalog as static files that any web server can serve',
  arguments: [argument('<catalog>', `catalog: ${catalogForms}`)],
  flags: grouped('Output', {
    to: required(text('directory', 'new or empty directory to write to')),
    name: text('name', 'catalog name in URLs (default: from the directory or image)'),
    update: flag('add to a directory that has published catalogs; keep files in use'),
    prune: flag('with --update: remove unreferenced files', { needs: 'update' }),
    olderThan: parsed(
      'duration',
      'with --prune: minimum time since a removed file was last referenced',
      duration('0s', '100000h'),
      { defaultText: '1h', needs: 'prune' },
    ),
  }),
  examples: {
    'Publish a catalog': 'opmate catalog publish ./catalog --name demo --to public',
    'Publish an update and remove unreferenced files':
      'opmate catalog publish ./catalog --name demo --to public --update --prune',
  },
  async runInSession({ context, args: [reference], options, session }) {
    const { to: directory, name, update, prune, olderThan } = options;
    const pruneMs = prune ? (olderThan ?? defaultPruneMs) : undefined;
    const published = await publishCatalog(reference, directory, session, { name, update, pruneMs });
    const { packages, added, removed, hash } = published;
    reportEnding(
      session.logger,
      [
        `published ${count(packages, 'package')} as ${published.name}: added ${count(added, 'file')}, removed ${removed}`,
        `serve ${directory} with any web server`,
      ],
      `opmate list packages https://HOST/catalogs/${published.name}`,
    );
    await writeAll(context.stdout, `${hash}\n`);
    return 0;
  },
});
