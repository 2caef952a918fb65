import { addContext } from '../../core/diagnostics-error.js';
import { readTemplate } from '../../catalog/template/read.js';
import { type TemplateType, isTemplateType, templateSchemas } from '../../catalog/template/template.js';
import { formatDiagnostic } from '../../core/diagnostic.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { drawGraph, drawingLimits } from '../../graph/mermaid.js';
import { resolveMigrationLevel } from '../../model/migrations.js';
import { describeProblems, renderTemplate } from '../../source/template.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { type OpenedInput, openInput } from '../opened-input.js';
import { Output, writeAll } from '../output.js';
import { useSession } from '../session.js';

interface RenderTemplateCommandOptions extends GlobalOptions {
  output?: string;
  migrateLevel?: string;
}

/**
 * `opmate template render`, `opmate alpha render-template`: the catalog that a template stands for on stdout. With
 * `checks` what makes that catalog invalid is said on stderr, and ranges with too many links are drawn once.
 */
export async function renderTemplateCommand(
  context: CommandContext,
  args: readonly string[],
  options: RenderTemplateCommandOptions,
  { checks = false }: { checks?: boolean } = {},
): Promise<void> {
  const { type, file } = readArguments(args);
  const { output = 'json' } = options;
  if (output !== 'json' && output !== 'yaml' && output !== 'mermaid') {
    throw new UsageError(`invalid --output value ${quoteGo(output)}, expected (json|yaml|mermaid)`);
  }
  const migrationLevel = resolveMigrationLevel(options.migrateLevel ?? '');
  await useSession(context, options, async (session) => {
    const { logger } = session;
    const input = await openTemplate(file, context);
    try {
      const template = await readTemplate(input, type, session);
      for (const warning of template.warnings) {
        const line = await template.lineOf(warning.path ?? []);
        logger.log('warn', formatDiagnostic({ ...warning, line }));
      }
      const format = output === 'mermaid' ? 'json' : output;
      const rendered = await renderTemplate(template, session, { format, migrationLevel });
      try {
        const drawing =
          output === 'mermaid'
            ? drawGraph(rendered.facts, {
                drawV0Semantics: true,
                ...(checks && drawingLimits),
              })
            : undefined;
        logger.close();
        if (drawing === undefined)
          await writeAll(context.stdout, rendered.assembly.write(context), context.signal);
        else {
          const output = new Output(context.stdout, context.signal);
          for (const piece of drawing.text) await output.write(piece);
          await output.end();
        }
        for (const warning of drawing?.warnings ?? []) logger.log('warn', warning);
        for (const problem of checks ? describeProblems(rendered.facts) : []) {
          logger.log('warn', `the catalog is not valid: ${problem}`);
        }
      } finally {
        await rendered.close();
      }
    } finally {
      await input.close();
    }
  });
}

/** A single argument is a type where it is the name of one, and a file otherwise. */
function readArguments(args: readonly string[]): { type: TemplateType | undefined; file: string } {
  const [first, second] = args;
  if (first === undefined) return { type: undefined, file: '-' };
  if (second === undefined) {
    return isTemplateType(first) ? { type: first, file: '-' } : { type: undefined, file: first };
  }
  if (isTemplateType(first)) return { type: first, file: second };
  const types = Object.keys(templateSchemas).sort().join(' ');
  throw new UsageError(`invalid template type ${quoteGo(first)}, must be one of: [${types}]`);
}

async function openTemplate(file: string, context: CommandContext): Promise<OpenedInput> {
  try {
    return await openInput(file, context);
  } catch (error) {
    if (!(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
    throw addContext(error, { subject: `unable to open ${quoteGo(file)}` });
  }
}
