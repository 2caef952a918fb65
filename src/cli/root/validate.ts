import { argument, defineCommand } from '../command/declaration.js';
import { reportOutput } from '../command/shared-flags.js';
import { catalogForms } from '../../api/open-catalog.js';
import { type CatalogVerdict, validate } from '../../api/validate-catalog.js';
import { encodeFinding } from '../reports/option-words.js';
import { redactUrls } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import { exitCodes } from '../exit-codes.js';
import { parseLevel } from '../logger.js';
import { writeAll } from '../output.js';
import { type FindingsReport, writeReport } from '../reports/report.js';
import { describeVerdict } from './verdict.js';

/** `opmate validate`; prints findings to stderr, or as data with `-o`. Exit code 1 for an invalid catalog, as in `opm`. */
export const command = defineCommand({
  summary: 'check a catalog and report every problem',
  description:
    'Prints findings to stderr and nothing to stdout, as opm validate does. With -o, findings are data on stdout.',
  tool: 'opm',
  arguments: [argument('<catalog>', `catalog: ${catalogForms}`)],
  flags: { output: reportOutput },
  examples: {
    'Check a catalog directory': 'opmate validate ./catalog',
    'Annotate a pull request on GitHub': 'opmate validate ./catalog -o github',
    'Check the catalog in an image': 'opmate validate registry.example.com/demo/catalog:v1',
  },
  async runInSession({ context, args: [directory], options, session }) {
    const { output: format } = options;
    const verdict = await validate(directory, session, { keepFaults: true });
    if (format === undefined && options.logFormat === 'json') {
      for (const finding of [...verdict.problems, ...verdict.warnings]) session.logger.report(finding);
    }
    session.logger.close();
    if (format !== undefined) await writeReport(context, toReport(verdict), format);
    else if (options.logFormat !== 'json') {
      const text = describeVerdict(verdict, parseLevel(options));
      if (text !== '') await writeAll(context.stderr, text);
    }
    return verdict.passed ? exitCodes.done : exitCodes.failed;
  },
});

function toReport(verdict: CatalogVerdict): FindingsReport {
  return {
    command: 'opmate validate',
    diagnostics: [...verdict.problems, ...verdict.warnings],
    text: () => describeVerdict(verdict),
    value: () => toValue(verdict),
    escapeHtml: true,
  };
}

/** Returns data as in `schemas/validate-output.schema.json`. */
function toValue({ passed, message, problems, warnings }: CatalogVerdict): JsonObject {
  const error = message !== undefined && { message: redactUrls(message) };
  return {
    passed,
    ...(error && { error, problems: problems.map(encodeFinding) }),
    ...(warnings.length > 0 && { warnings: warnings.map(encodeFinding) }),
  };
}
