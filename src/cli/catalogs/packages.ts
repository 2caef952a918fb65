import { listServedPackages } from '../../api/served/catalog-packages.js';
import { argument, defineCommand } from '../command/declaration.js';
import { grouped, text } from '../command/flags.js';
import { printableLine } from '../printable.js';
import { writePieces } from '../session.js';
import { findServed, serverFlags } from './server-state.js';

/** `opmate catalogs packages`. */
export const command = defineCommand({
  summary: 'print packages as CATALOG/PACKAGE; for one package, the catalog with the highest priority',
  arguments: [argument('[package]', 'PACKAGE or CATALOG/PACKAGE (default: all)')],
  flags: {
    ...grouped('Selection', {
      catalog: text('name', 'select this catalog'),
      selector: text('labels', 'select catalogs with these labels: KEY=VALUE,…'),
    }),
    ...serverFlags,
  },
  examples: {
    'List the packages of all catalogs': 'opmate catalogs packages',
    'Find the catalog that provides a package': 'opmate catalogs packages demo --url http://127.0.0.1:8080',
  },
  async runInSession({ context, args: [name], options, session }) {
    const { catalog, selector } = options;
    const served = await findServed(context, options);
    const packages = await listServedPackages(served, session, { package: name, catalog, selector });
    const lines = packages.map((item) => `${printableLine(`${item.catalog}/${item.name}`)}\n`);
    await writePieces(context, session, lines);
  },
});
