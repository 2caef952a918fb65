import { diagnoseCatalog } from '../../api/diagnose-catalog.js';
import { catalogForms } from '../../api/open-catalog.js';
import { encodeFinding } from '../reports/option-words.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, list } from '../command/flags.js';
import { reportOutput } from '../command/shared-flags.js';
import { exitCodes } from '../exit-codes.js';
import { formatFindings } from '../catalog/finding-text.js';
import { writeReport } from '../reports/report.js';

/** `opmate catalog lifecycle check`. */
export const command = defineCommand({
  summary: 'check the lifecycle blobs of a catalog; exit with 3 on findings',
  description: 'Runs the check lifecycle of catalog doctor; notices do not set the exit code.',
  arguments: [argument('<catalog>', `catalog: ${catalogForms}`)],
  flags: {
    output: reportOutput,
    package: list('name', 'report only on these packages', { short: 'p', group: 'Selection' }),
    require: flag('report packages without a lifecycle blob'),
  },
  examples: {
    'Check the lifecycles of a catalog': 'opmate catalog lifecycle check ./catalog',
    'Annotate the lines of a pull request':
      'opmate catalog lifecycle check ./catalog --package demo -o github',
  },
  async runInSession({ context, args: [reference], options, session }) {
    const { package: packages, output = 'text', require } = options;
    const findings = await diagnoseCatalog(reference, session, {
      checks: new Set(['invalid', 'empty-catalog', 'lifecycle']),
      packages: packages === undefined ? undefined : new Set(packages),
      requireLifecycles: require,
    });
    session.logger.close();
    const isFailure = ({ severity }: { severity: string }): boolean => severity !== 'notice';
    const passed = !findings.some(isFailure);
    const report = {
      command: 'opmate catalog lifecycle check',
      diagnostics: findings,
      isFailure,
      text: () => formatFindings(findings),
      value: () => ({ passed, findings: findings.map(encodeFinding) }),
    };
    await writeReport(context, report, output);
    return passed ? exitCodes.done : exitCodes.findings;
  },
});
