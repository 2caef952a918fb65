import { explainClusterOperator } from '../../api/cluster/explain-operator.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { encodeFinding } from '../reports/option-words.js';
import type { OperatorExplanation } from '../../solve/v0/explain-operator.js';
import { argument, defineCommand } from '../command/declaration.js';
import { grouped, repeated } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import { readResolverOptions, snapshotFlags } from './snapshot-input.js';

/** `opmate cluster explain`; exit code 3 if the operator is held back. */
export const command = defineCommand({
  summary: 'explain the version of an operator: why, held back by what, remedy',
  description:
    'Explains an installed operator, or a bundle that a Subscription could lead to, as OLM v0 resolves its namespace.',
  arguments: [argument('<name>', 'ClusterServiceVersion, bundle, package or Subscription')],
  flags: {
    ...grouped('Input', {
      snapshot: repeated('place', 'objects of the cluster: file, must-gather directory (default: stdin)'),
    }),
    ...snapshotFlags,
    output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }),
  },
  commonFlags: ['snapshot', 'catalog', 'namespace', 'output'],
  examples: {
    'Explain the version of a package':
      'opmate cluster explain demo --snapshot objects.yaml --catalog demo=./catalog',
    'Explain why a bundle is not installed':
      'opmate cluster explain demo.v1.1.0 --snapshot must-gather --catalog demo=./catalog -o json',
  },
  async runInSession({ context, args: [name], options, session }) {
    const request = await readResolverOptions(options.snapshot ?? [], options, context);
    const { operators, findings } = await explainClusterOperator({ ...request, name }, session);
    session.logger.close();
    for (const finding of findings) session.logger.report(finding);
    const shown =
      options.output === 'text'
        ? operators.map(describeOperator).join('\n')
        : encodeData(toData(operators, findings), options.output);
    await writeAll(context.stdout, shown, session.signal);
    const isHeldBack = operators.some(({ state }) => state === 'held-back' || state === 'blocked');
    return isHeldBack ? exitCodes.findings : exitCodes.done;
  },
});

function toData(operators: readonly OperatorExplanation[], findings: readonly Diagnostic[]): object {
  return { operators, findings: findings.map(encodeFinding) };
}

function describeOperator(operator: OperatorExplanation): string {
  const { namespace, package: name, installed, version, state, reason } = operator;
  const title = installed === '' ? 'not installed' : `${installed} (${version})`;
  const lines = [`${namespace}/${name || installed}: ${title}: ${state}`, `  why: ${reason}`];
  for (const { name: by, text } of operator.requiredBy)
    lines.push(`  required: ${by} requires an operator ${text}`);
  for (const upgrade of operator.upgrades) lines.push(`  next: ${upgrade.name}: ${upgrade.reason}`);
  for (const { code, by, problem, remedy } of operator.heldBackBy) {
    lines.push(`  ${code === 'channel' ? 'alternative:' : 'held back by'} ${by}: ${problem}`);
    if (remedy !== undefined) lines.push(`    remedy: ${remedy}`);
  }
  return lines.map((line) => `${printable(line)}\n`).join('');
}
