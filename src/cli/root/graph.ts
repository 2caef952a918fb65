import { argument, defineCommand } from '../command/declaration.js';
import { flag, grouped, list, text } from '../command/flags.js';
import { catalogForms } from '../../api/open-catalog.js';
import { readFacts } from '../../api/read-facts.js';
import {
  drawGraph,
  drawSvg,
  drawingLimits,
  readDrawnChannels,
  readGraph,
} from '../../api/view/draw-graph.js';
import { requireKnown } from '../../core/suggest.js';
import type { DrawnChannel } from '../../view/graph-svg.js';
import { outputFormat } from '../command/shared-flags.js';
import { writePieces } from '../session.js';

const flags = {
  ...grouped('Selection', {
    minimumEdge: text('bundle', 'omit bundles older than this one'),
    package: list('name', 'show only these packages', {
      short: 'p',
      aliases: ['package-name'],
      mayBeNone: true,
    }),
  }),
  drawV0Semantics: flag('with -o mermaid: mark upgrades that OLM v0 cannot perform', { group: 'Output' }),
  output: outputFormat(['mermaid', 'svg', 'json'], { default: 'mermaid' }),
};

/** `opmate graph`; `opm alpha render-graph` draws every link of every range. */
export const command = defineCommand({
  summary: 'draw the upgrade graph as Mermaid text, SVG or JSON',
  arguments: [argument('<reference...>', `bundle or catalog: ${catalogForms}`)],
  flags,
  examples: {
    'Draw the upgrade graph of one package': 'opmate graph ./catalog -p demo',
    'Draw it as SVG': 'opmate graph ./catalog -p demo -o svg',
    'Omit bundles older than demo.v1.0.0': 'opmate graph ./catalog -p demo --minimum-edge demo.v1.0.0',
  },
  async runInSession({ context, args: [references], options, tool, session }) {
    const facts = await readFacts(references, session);
    // opm draws nothing, and succeeds.
    if (tool === undefined) requireKnown('package', options.package ?? [], facts.packages);
    const selection = { minimumEdge: options.minimumEdge, packages: options.package };
    if (options.output !== 'mermaid') {
      const channels = readDrawnChannels(facts, selection);
      const drawing = options.output === 'svg' ? drawSvg(channels) : writeJson(channels);
      await writePieces(context, session, drawing);
      return;
    }
    const { text, warnings } = drawGraph(facts, {
      ...selection,
      drawV0Semantics: options.drawV0Semantics,
      ...(tool === undefined && drawingLimits),
    });
    await writePieces(context, session, text);
    for (const warning of warnings) session.logger.log('warn', warning);
  },
});

/** Writes one channel at a time: the graph of a large catalog exceeds the maximum string length. */
function* writeJson(channels: readonly DrawnChannel[]): Generator<string, void> {
  yield '{\n  "channels": [';
  for (const [index, channel] of channels.entries()) {
    const { name, entries, getVersion, getDeprecation } = channel;
    const { heads } = readGraph(entries);
    const shown = {
      package: channel.package,
      name,
      heads,
      entries: entries.map((entry) => ({
        name: entry.name,
        version: getVersion(entry.name),
        ...(entry.replaces !== '' && { replaces: entry.replaces }),
        ...(entry.skips.length > 0 && { skips: entry.skips }),
        ...(entry.skipRange !== '' && { skipRange: entry.skipRange }),
        ...(getDeprecation(entry.name) !== undefined && { deprecation: getDeprecation(entry.name) }),
      })),
    };
    const text = JSON.stringify(shown, null, 2).replaceAll('\n', '\n    ');
    yield `${index === 0 ? '' : ','}\n    ${text}`;
  }
  yield channels.length === 0 ? ']\n}\n' : '\n  ]\n}\n';
}
