import { listServedMetas } from '../../api/served/catalog-metas.js';
import { defineCommand } from '../command/declaration.js';
import { grouped, list, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { writeAll } from '../output.js';
import { encodeData } from '../reports/encode-data.js';
import { formatTable } from '../table.js';
import { findServed, serverFlags } from './server-state.js';

/** `opmate catalogs metas`. */
export const command = defineCommand({
  summary: 'list the blobs of catalogs: packages, channels, bundles and others',
  flags: {
    output: outputFormat(['table', 'json', 'yaml'], { default: 'table' }),
    ...grouped('Selection', {
      catalog: text('name', 'select this catalog'),
      schema: text('schema', 'select blobs with this schema, e.g. olm.package'),
      package: list('name', 'select blobs of these packages', { short: 'p' }),
      name: text('name', 'select blobs with this name'),
    }),
    ...serverFlags,
  },
  examples: {
    'List the packages of all catalogs': 'opmate catalogs metas --schema olm.package',
    'List the blobs of a package': 'opmate catalogs metas -p demo --url http://127.0.0.1:8080',
  },
  async runInSession({ context, options, session }) {
    const { catalog, schema, package: packages, name, output } = options;
    const served = await findServed(context, options);
    const metas = [];
    for await (const meta of listServedMetas(served, session, {
      catalog,
      schema,
      packages,
      name,
    }))
      metas.push(meta);
    session.logger.close();
    const rows = metas.map((meta) => [meta.name || '-', meta.catalog, meta.schema, meta.package || '-']);
    await writeAll(
      context.stdout,
      output === 'table'
        ? formatTable(['NAME', 'CATALOG', 'SCHEMA', 'PACKAGE'], rows)
        : encodeData(
            metas.map((meta) => ({ ...meta })),
            output,
            { indent: 4 },
          ),
      session.signal,
    );
  },
});
