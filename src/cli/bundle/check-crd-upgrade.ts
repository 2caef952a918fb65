import { argument, defineCommand } from '../command/declaration.js';
import { reportOutput } from '../command/shared-flags.js';
import { contentFlags, sourceForms } from './content-flags.js';
import { checkCrdUpgrade } from '../../api/bundle/check-crd-upgrade.js';
import { pinValues } from '../../api/bundle/bundle-sources.js';
import { encodeFinding } from '../reports/option-words.js';
import { exitCodes } from '../exit-codes.js';
import { type FindingsReport, writeReport } from '../reports/report.js';
import { printFindings, logWarnings } from './findings.js';

/** `opmate bundle check-crd-upgrade`; exit code 3 for findings. */
export const command = defineCommand({
  summary: 'check that CRDs can safely replace older ones',
  arguments: [
    argument('<old>', `file of definitions, or bundle: ${sourceForms}`),
    argument('<new>', 'newer file or bundle; same forms as OLD'),
  ],
  flags: { ...contentFlags, output: reportOutput },
  examples: {
    'Compare the definitions of two bundles':
      'opmate bundle check-crd-upgrade registry.example.com/demo/bundle:v1.0.0 ./bundle',
    'Print the findings as data': 'opmate bundle check-crd-upgrade ./bundle ./bundle -o json',
  },
  async runInSession({ context, args: [oldReference, newReference], options, session }) {
    const { output: format = 'text' } = options;
    const { findings, warnings, missing, isReadable, pins } = await checkCrdUpgrade(
      oldReference,
      newReference,
      session,
      options,
    );
    for (const title of missing) {
      session.logger.log('warn', `${title}: is not in ${newReference}; it stays on the cluster as it is`);
    }
    logWarnings(session, warnings);
    session.logger.close();
    const isData = format === 'json' || format === 'yaml';
    if (format === 'text' || (isData && !isReadable)) await printFindings(context, findings);
    else {
      const report: FindingsReport = {
        command: 'opmate bundle check-crd-upgrade',
        diagnostics: findings,
        value: () => ({
          findings: findings.map(encodeFinding),
          ...(pins.length > 0 && { sources: pinValues(pins) }),
        }),
      };
      await writeReport(context, report, format);
    }
    return findings.length > 0 ? exitCodes.findings : exitCodes.done;
  },
});
