import { mapConcurrent } from '../../core/concurrency.js';
import { drawGraph, maxRangeLinks } from '../../graph/mermaid.js';
import { joinFacts, sourceFacts } from '../../source/facts.js';
import { inReference } from '../../source/reference-error.js';
import { openSource } from '../../source/source.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { Output } from '../output.js';
import { useSession } from '../session.js';

interface GraphCommandOptions extends GlobalOptions {
  minimumEdge?: string;
  packageName?: string;
  drawV0Semantics?: boolean;
}

/**
 * `opmate graph`: the upgrade graph of one or more sources as Mermaid text on stdout. `drawsAllRanges` draws a link for
 * every entry in every range, as `opm alpha render-graph`, however many there are.
 */
export async function graph(
  context: CommandContext,
  references: string[],
  options: GraphCommandOptions,
  { drawsAllRanges }: { drawsAllRanges: boolean },
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
      maxRangeLinks: drawsAllRanges ? undefined : maxRangeLinks,
    });
    session.logger.close();
    const output = new Output(context.stdout, context.signal);
    for (const piece of text) await output.write(piece);
    await output.end();
    for (const warning of warnings) session.logger.log('warn', warning);
  });
}
