import {
  checkRepository,
  defaultSupported,
  repositoryChecks,
  repositoryKinds,
} from '../../api/repo/check-repository.js';
import { formatMessage, formatLocation } from '../../core/diagnostic.js';
import { encodeFinding, nameFlags } from '../reports/option-words.js';
import type { RepositoryFinding } from '../../repo/checks/check.js';
import { argument, defineCommand } from '../command/declaration.js';
import { choice, grouped, list, repeated, text } from '../command/flags.js';
import { reportOutput } from '../command/shared-flags.js';
import { exitCodes } from '../exit-codes.js';
import { count, printable } from '../printable.js';
import { type FindingsReport, writeReport } from '../reports/report.js';
import { repositoryFlag } from './flags.js';

const kinds = Object.keys(repositoryKinds) as (keyof typeof repositoryKinds)[];

/** `opmate repo check`. */
export const command = defineCommand({
  summary: 'run the static checks of operator pipelines; exit with 3 on errors',
  description: `Checks: ${repositoryChecks.map(({ name }) => name).join(', ')}.`,
  arguments: [argument('[operator...]', 'OPERATOR or OPERATOR/VERSION (default: all operators)')],
  flags: {
    ...repositoryFlag,
    output: reportOutput,
    ...grouped('Selection', {
      base: text('revision', 'check only what differs from this revision of Git', {
        excludes: ['<operator>'],
      }),
      catalog: repeated('name', 'check this catalog, and bundles only if named'),
      suite: choice('kind', kinds, 'suite of checks', { default: 'community' }),
      skip: list('check', 'skip these checks'),
      supported: text('versions', 'OpenShift versions with an index: a range or a list', {
        default: defaultSupported,
      }),
    }),
  },
  examples: {
    'Check one bundle': 'opmate repo check demo/1.0.0 --skip check_using_fbc',
    'Check a repository, with annotations for GitHub': 'opmate repo check -o github',
  },
  async runInSession({ context, args: [operators], options, session }) {
    const { repository, output: format = 'text', base, catalog: catalogs, suite, skip, supported } = options;
    const names = operators.length === 0 ? undefined : operators;
    const checking = { names, base, catalogs, suite, skip, supported };
    const findings = await checkRepository(repository, session, checking);
    session.logger.close();
    const passed = findings.every(({ severity }) => severity !== 'error');
    const report: FindingsReport = {
      command: 'opmate repo check',
      diagnostics: findings,
      rules: repositoryChecks.map(({ name, summary }) => ({ id: name, level: 'error', summary })),
      text: () => formatFindings(findings),
      value: () => ({ passed, findings: findings.map(encodeFinding) }),
    };
    await writeReport(context, report, format);
    return passed ? exitCodes.done : exitCodes.findings;
  },
});

function formatFindings(findings: readonly RepositoryFinding[]): string {
  if (findings.length === 0) return 'no problems found\n';
  const lines = findings.map(nameFlags).flatMap((finding) => {
    const { severity, code, hint } = finding;
    const place = formatLocation(finding);
    const prefix = place === undefined ? '' : `${place}: `;
    const line = `${prefix}${severity}: ${formatMessage(finding)} [${code}]`;
    return hint === undefined ? [line] : [line, `  hint: ${hint}`];
  });
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const total = `${count(errors, 'error')}, ${count(findings.length - errors, 'warning')}`;
  return [...lines, total].map((line) => `${printable(line)}\n`).join('');
}
