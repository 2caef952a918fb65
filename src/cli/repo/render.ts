import { renderRepository } from '../../api/repo/render-repository.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, grouped, repeated } from '../command/flags.js';
import { reportEnding, summarizeItems } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import { count } from '../printable.js';
import { repositoryFlag } from './flags.js';

/** `opmate repo render`. */
export const command = defineCommand({
  summary: 'render the catalogs that ci.yaml maps templates to',
  description:
    'Writes catalogs/CATALOG/OPERATOR/catalog.yaml with the bytes of "make catalogs". Each bundle image is pulled ' +
    'once. All catalogs are written, or none.',
  arguments: [argument('[operator...]', 'operators to render (default: all with a catalog mapping)')],
  flags: {
    ...repositoryFlag,
    ...grouped('Selection', { catalog: repeated('name', 'render only this catalog, e.g. v4.18') }),
    fromCheckout: flag('read bundles of the checkout in place of their images, where known'),
    check: flag('compare without writing; exit with 3 if committed files differ'),
  },
  examples: {
    'Render all catalogs of one operator': 'opmate repo render demo',
    'Check that committed catalogs are up to date': 'opmate repo render --check',
    'Check them without pulling images of the checkout': 'opmate repo render demo --from-checkout --check',
  },
  async runInSession({ args: [operators], options, session }) {
    const { repository, catalog: catalogs, fromCheckout, check } = options;
    const named = operators.length === 0 ? undefined : operators;
    const rendered = await renderRepository(repository, session, {
      operators: named,
      catalogs,
      fromCheckout,
      check,
    });
    const changes = rendered.catalogs.filter(({ state }) => state !== 'unchanged');
    const lines = changes.map(({ directory, state }) => `${directory}: ${check ? `to be ${state}` : state}`);
    const total = `${count(rendered.catalogs.length, 'catalog')} from ${count(rendered.images, 'bundle')}`;
    if (rendered.catalogs.length === 0) {
      reportEnding(session.logger, ['no operator is mapped to a catalog in ci.yaml']);
      return exitCodes.done;
    }
    const ending =
      changes.length === 0
        ? 'up to date'
        : `${count(changes.length, 'catalog')} ${check ? 'out of date' : 'written'}`;
    reportEnding(session.logger, [
      ...summarizeItems(lines, 'catalog', session.logger),
      `rendered ${total}: ${ending}`,
    ]);
    return check && changes.length > 0 ? exitCodes.findings : exitCodes.done;
  },
});
