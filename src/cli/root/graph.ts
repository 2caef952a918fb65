import { argument, defineCommand } from '../command/declaration.js';
import { type FlagValues, flag, text } from '../command/flags.js';
import { mapConcurrent } from '../../core/concurrency.js';
import { drawGraph, drawingLimits } from '../../graph/mermaid.js';
import { joinFacts, sourceFacts } from '../../source/facts.js';
import { inReference } from '../../source/reference-error.js';
import { openSource } from '../../source/source.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { Output } from '../output.js';
import { useSession } from '../session.js';

const flags = {
  minimumEdge: text('bundle', 'omit bundles older than this one', { group: 'Selection' }),
  packageName: text('package', 'show only this package', { short: 'p', group: 'Selection' }),
  drawV0Semantics: flag('mark upgrades that OLM v0 cannot perform', { group: 'Output' }),
};

/**
 * Declares `opmate graph`. `drawsAllRanges` draws a link for every entry in every range, as `opm alpha render-graph`,
 * however many there are.
 */
function graphCommand({ drawsAllRanges }: { drawsAllRanges: boolean }) {
  return defineCommand({
    summary: 'draw the upgrade graph as Mermaid text',
    ...(drawsAllRanges && { tool: 'opm' as const }),
    arguments: [argument('<reference...>', 'catalog or bundle: directory or image')],
    flags,
    examples: [
      ['Draw the upgrade graph of one package', 'opmate graph ./catalog -p demo'],
      ['Draw only what is newer than a bundle', 'opmate graph ./catalog -p demo --minimum-edge demo.v1.0.0'],
    ],
    run: ({ context, args: [references], options }) => draw(context, references, options, drawsAllRanges),
  });
}

/** `opmate graph`. */
export const command = graphCommand({ drawsAllRanges: false });
/** `opmate alpha render-graph`. */
export const alphaCommand = graphCommand({ drawsAllRanges: true });

async function draw(
  context: CommandContext,
  references: string[],
  options: FlagValues<typeof flags> & GlobalOptions,
  drawsAllRanges: boolean,
): Promise<void> {
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
      package: options.packageName,
      drawV0Semantics: options.drawV0Semantics,
      ...(!drawsAllRanges && drawingLimits),
    });
    session.logger.close();
    const output = new Output(context.stdout, context.signal);
    for (const piece of text) await output.write(piece);
    await output.end();
    for (const warning of warnings) session.logger.log('warn', warning);
  });
}
