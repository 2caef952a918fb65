import { writeFile } from 'node:fs/promises';
import { withOpen } from '../../core/concurrency.js';
import { argument, defineCommand } from '../command/declaration.js';
import { type FlagValues, text } from '../command/flags.js';
import { migrateLevel, outputFormat } from '../command/shared-flags.js';
import { formatLocation } from '../../core/diagnostic.js';
import { type TemplateType, isTemplateType, templateSchemas } from '../../catalog/template/template.js';
import { UsageError } from '../../core/errors.js';
import { replaceFileBy } from '../../files/replace-file.js';
import { quoteGo } from '../../document/go-json.js';
import { drawGraph, drawingLimits } from '../../api/view/draw-graph.js';
import { formatCatalogMessage } from '../../model/catalog-diagnostic.js';
import { renderTemplate } from '../../api/template/render-template.js';
import type { CommandContext } from '../context.js';
import { stdinName } from '../input.js';
import { type CommandSession, writePieces } from '../session.js';

const flags = {
  output: outputFormat(['json', 'yaml', 'mermaid'], { default: 'json' }),
  to: text('file', 'write to this file, which is replaced, instead of stdout', { group: 'Output' }),
  migrateLevel,
};

/** `opmate template render`; unlike `opm alpha render-template`, it warns of an invalid catalog and limits drawn ranges. */
export const command = defineCommand({
  summary: 'render a template as a catalog',
  arguments: [
    argument('[type]', 'basic, semver or substitutes (default: detected from the schema)'),
    argument('[file]', 'template file, - for stdin (default: stdin)'),
  ],
  flags,
  examples: {
    'Render a template as YAML': 'opmate template render template.yaml -o yaml',
    'Write the catalog of a template':
      'opmate template render template.yaml -o yaml --to catalog/catalog.yaml',
    'Draw the upgrade graph of its catalog': 'opmate template render template.yaml -o mermaid',
  },
  runInSession: ({ context, args, options, tool, session }) =>
    renderFile(context, args, options, tool === undefined, session),
});

async function renderFile(
  context: CommandContext,
  args: readonly (string | undefined)[],
  options: FlagValues<typeof flags>,
  checks: boolean,
  session: CommandSession,
): Promise<void> {
  const { type, file } = readArguments(args);
  const { output, migrateLevel } = options;
  const format = output === 'mermaid' ? 'json' : output;
  const input = file === '-' ? { stream: context.stdin, name: stdinName } : file;
  await withOpen(renderTemplate(input, session, { type, format, migrateLevel }), async (rendered) => {
    const drawing =
      output === 'mermaid'
        ? drawGraph(rendered.facts, { drawV0Semantics: true, ...(checks && drawingLimits) })
        : undefined;
    const pieces = drawing?.text ?? rendered.write(context);
    if (options.to === undefined) await writePieces(context, session, pieces);
    else await replaceFileBy(options.to, (staging) => writeFile(staging, pieces));
    for (const warning of drawing?.warnings ?? []) session.logger.log('warn', warning);
    // A template need not make a valid catalog.
    for (const problem of checks ? await rendered.validate() : []) {
      const place = formatLocation(problem);
      const message = `the catalog is not valid: ${formatCatalogMessage(problem)}`;
      session.logger.log('warn', place === undefined ? message : `${place}: ${message}`);
    }
  });
}

/** Reads the arguments; a single one is a type if it names one, else a file. Throws UsageError. */
function readArguments(args: readonly (string | undefined)[]): {
  type: TemplateType | undefined;
  file: string;
} {
  const [first, second] = args;
  if (first === undefined) return { type: undefined, file: '-' };
  if (second === undefined) {
    return isTemplateType(first) ? { type: first, file: '-' } : { type: undefined, file: first };
  }
  if (isTemplateType(first)) return { type: first, file: second };
  const types = Object.keys(templateSchemas).sort().join(' ');
  throw new UsageError(`invalid template type ${quoteGo(first)}, must be one of: [${types}]`);
}
