import { argument, defineCommand } from '../command/declaration.js';
import { flag, list, text } from '../command/flags.js';
import { mapConcurrent } from '../../core/concurrency.js';
import { drawGraph, drawingLimits } from '../../graph/mermaid.js';
import { joinFacts, sourceFacts } from '../../source/facts.js';
import { inReference } from '../../source/reference-error.js';
import { openSource } from '../../source/source.js';
import { Output } from '../output.js';
import { useSession } from '../session.js';

const flags = {
  minimumEdge: text('bundle', 'omit bundles older than this one', { group: 'Selection' }),
  package: list('name', 'show only these packages', {
    short: 'p',
    aliases: ['package-name'],
    group: 'Selection',
    // As in opm: an empty name draws all.
    mayBeNone: true,
  }),
  drawV0Semantics: flag('mark upgrades that OLM v0 cannot perform', { group: 'Output' }),
};

/**
 * `opmate graph`; as `opm alpha render-graph` it draws a link for every entry in every range, however many there are.
 */
export const command = defineCommand({
  summary: 'draw the upgrade graph as Mermaid text',
  arguments: [argument('<reference...>', 'catalog or bundle: directory or image')],
  flags,
  examples: [
    ['Draw the upgrade graph of one package', 'opmate graph ./catalog -p demo'],
    ['Draw only what is newer than a bundle', 'opmate graph ./catalog -p demo --minimum-edge demo.v1.0.0'],
  ],
  async run({ context, args: [references], options, tool }) {
    await useSession(context, options, async (session) => {
      const all = await mapConcurrent(
        references,
        8,
        async (reference) => {
          try {
            const source = await openSource(reference, session);
            try {
              return await sourceFacts(source, reference, session);
            } finally {
              await source.close();
            }
          } catch (error) {
            throw inReference(error, reference);
          }
        },
        session,
      );
      const { text, warnings } = drawGraph(joinFacts(all), {
        minimumEdge: options.minimumEdge,
        packages: options.package,
        drawV0Semantics: options.drawV0Semantics,
        ...(tool === undefined && drawingLimits),
      });
      session.logger.close();
      const output = new Output(context.stdout, context.signal);
      for (const piece of text) await output.write(piece);
      await output.end();
      for (const warning of warnings) session.logger.log('warn', warning);
    });
  },
});
