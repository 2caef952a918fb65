import { type GatedCatalog, gateCatalog } from '../../api/gate-catalog.js';
import { gateNames } from '../../catalog/gate/gate.js';
import { parseOpenShiftVersion } from '../../core/openshift-version.js';
import { type Diagnostic, formatDiagnostic } from '../../core/diagnostic.js';
import { encodeFinding, nameFlags } from '../reports/option-words.js';
import { asJson } from '../../document/json.js';
import { argument, defineCommand } from '../command/declaration.js';
import { choice, grouped, list, parsed, text } from '../command/flags.js';
import { allowMissing, outputFormat } from '../command/shared-flags.js';
import { exitCodes } from '../exit-codes.js';
import { readTextInput } from '../input.js';
import { writeAll } from '../output.js';
import { count, printable } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import { writeReport } from '../reports/report.js';

const formats = ['text', 'json', 'yaml', 'konflux', 'junit', 'sarif', 'github'] as const;

/** `opmate catalog gate`. */
export const command = defineCommand({
  summary: 'check a catalog fragment as release pipelines do; exit with 3 on failures',
  description: `Gates: ${gateNames.join(', ')}. fips selects bundles and images to scan; it does not scan them.`,
  arguments: [argument('<fragment>', 'catalog fragment: directory or image')],
  flags: {
    output: outputFormat(formats, { default: 'text' }),
    ...grouped('Input', {
      against: text('index', 'released index to compare with'),
      allowMissing: allowMissing('against'),
      previous: text('index', 'released index of the previous OpenShift version, for new packages', {
        needs: 'against',
      }),
      openshift: parsed('version', 'OpenShift version of the fragment, e.g. 4.18', parseOpenShiftVersion),
      baseImage: text('reference', 'base image, for a fragment that is a directory'),
      probe: choice(
        'state',
        ['present', 'missing'] as const,
        'grpc_health_probe, for a fragment that is a directory',
      ),
      profile: text('file', 'allowed base images, registries, channels and breaking changes'),
    }),
    ...grouped('Selection', { gate: list('name', 'run only these gates', { offered: gateNames }) }),
  },
  examples: {
    'Check a fragment against a released index':
      'opmate catalog gate ./catalog --against ./catalog --gate pruning',
    'Print the result as Konflux reads it':
      'opmate catalog gate ./catalog --against ./catalog --gate pruning -o konflux',
  },
  async runInSession({ context, args: [fragment], options, session }) {
    const {
      output,
      against,
      allowMissing: allow,
      previous,
      openshift,
      baseImage,
      probe,
      profile: file,
      gate: gates,
    } = options;
    const profile = file === undefined ? undefined : await readTextInput(file, context);
    const hasProbe = probe === undefined ? undefined : probe === 'present';
    const gated = await gateCatalog(fragment, session, {
      against,
      allowMissing: allow,
      previous,
      gates,
      profile,
      openshift,
      baseImage,
      hasProbe,
    });
    session.logger.close();
    const passed = gated.verdicts.every(({ result }) => result !== 'FAILURE');
    const findings = gated.verdicts.flatMap((verdict) => verdict.findings);
    if (output === 'text') {
      await writeAll(context.stdout, formatVerdicts(gated), session.signal);
    } else if (output === 'konflux') {
      await writeAll(
        context.stdout,
        encodeData(toTestOutput(gated, context.now()), 'json', { indent: 0 }),
        session.signal,
      );
    } else {
      const value = asJson({
        passed,
        gates: gated.verdicts.map(({ findings: own, ...verdict }) => ({
          ...verdict,
          findings: own.map(encodeFinding),
        })),
        unreleasedImages: gated.unreleasedImages,
        scan: gated.scan,
      });
      const report = { command: 'opmate catalog gate', diagnostics: findings, value: () => value };
      await writeReport(context, report, output);
    }
    return passed ? exitCodes.done : exitCodes.findings;
  },
});

/** Returns the result `TEST_OUTPUT` of a Konflux task. (Source: make_result_json of konflux-test.) */
function toTestOutput({ verdicts }: GatedCatalog, now: Date): object {
  const sum = (key: 'successes' | 'failures' | 'warnings'): number =>
    verdicts.reduce((total, verdict) => total + verdict[key], 0);
  const failed = verdicts.filter(({ result }) => result === 'FAILURE').map(({ gate }) => gate);
  return {
    result: failed.length > 0 ? 'FAILURE' : 'SUCCESS',
    timestamp: now.toISOString().replace(/\.\d+Z$/, '+00:00'),
    note: failed.length > 0 ? `failed gates: ${failed.join(', ')}` : 'all gates passed',
    namespace: 'default',
    successes: sum('successes'),
    failures: sum('failures'),
    warnings: sum('warnings'),
  };
}

function formatVerdicts({ verdicts, unreleasedImages, scan }: GatedCatalog): string {
  const format = (finding: Diagnostic): string[] => [
    `  ${finding.severity}: ${formatDiagnostic(finding)}`,
    ...(finding.hint === undefined ? [] : [`    hint: ${finding.hint}`]),
  ];
  const lines = verdicts.flatMap(({ gate, result, findings }) => [
    `${gate}: ${result}`,
    ...findings.map(nameFlags).flatMap(format),
  ]);
  if (unreleasedImages.length > 0)
    lines.push(`${count(unreleasedImages.length, 'image')} not in the released index`);
  if (scan !== undefined) {
    const bundles = scan.bundles.filter(({ isScanned }) => isScanned);
    lines.push(`fips: ${count(scan.images.length, 'image')} of ${count(bundles.length, 'bundle')} to scan`);
    lines.push(...scan.images.map((image) => `  ${image}`));
  }
  return lines.map((line) => `${printable(line)}\n`).join('');
}
