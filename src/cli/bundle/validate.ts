import { argument, defineCommand } from '../command/declaration.js';
import { type FlagValues, list, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { imageBuilderFlag } from './author-flags.js';
import { contentFlags, sourceForms } from './content-flags.js';
import { optionalValidators } from '../../bundle/validate/validate-bundle.js';
import { encodeFinding } from '../reports/option-words.js';
import { UsageError } from '../../core/errors.js';
import { validateBundle } from '../../api/bundle/validate-bundle.js';
import { inSource } from '../../api/bundle/bundle-sources.js';
import { exitCodes } from '../exit-codes.js';
import { requireFlag } from '../command/require-flag.js';
import { reportFormats } from '../reports/formats.js';
import { type FindingsReport, writeReport } from '../reports/report.js';
import { printFindings } from './findings.js';

const builders = ['docker', 'podman', 'none'];

const validateFlags = {
  ...contentFlags,
  tag: text('image', 'bundle image, instead of SOURCE', { short: 't', group: 'Input' }),
  imageBuilder: imageBuilderFlag(builders),
  optionalValidators: list('name', 'additional validators', {
    offered: optionalValidators,
    group: 'Selection',
  }),
  output: outputFormat(reportFormats, { otherwise: 'optionalValidators', defaultText: 'text' }),
  k8sVersion: text('version', 'Kubernetes version for alpha-deprecated-apis', { group: 'Selection' }),
};

/**
 * `opmate bundle validate`; exit code 3 for errors. `alpha bundle validate` exits with 1, and omits warnings that `opm`
 * does not print.
 */
export const command = defineCommand({
  summary: 'check that a bundle can be published and installed',
  description: `Additional validators: ${optionalValidators.join(', ')}.`,
  arguments: [argument('[source]', sourceForms)],
  flags: validateFlags,
  commonFlags: ['optionalValidators', 'k8sVersion', 'output', 'lock', 'secrets'],
  examples: {
    'Check a bundle directory': 'opmate bundle validate ./bundle',
    'Check a bundle image for a community catalog':
      'opmate bundle validate registry.example.com/demo/bundle:v1.0.0 --optional-validators community',
    'Annotate a pull request on GitHub': 'opmate bundle validate ./bundle -o github',
  },
  async runInSession({ context, args: [source], options, tool, session }) {
    const isOpm = tool !== undefined;
    checkOptions(source, options);
    const { output: format = 'text', optionalValidators: optional = [] } = options;
    if (!isOpm && options.tag === undefined && source === undefined) {
      throw new UsageError('missing source', { hint: 'specify the directory or image of a bundle' });
    }
    const reference = requireFlag(options.tag ?? source, '--tag', 'IMAGE');
    const categoriesFile = context.environment['OPERATOR_BUNDLE_CATEGORIES'] || undefined;
    const { k8sVersion } = options;
    const checked = { ...options, optional, k8sVersion, categoriesFile };
    const { findings: all, isInPlace } = await validateBundle(reference, session, checked);
    const findings = isOpm ? all.filter(({ isUnreported }) => isUnreported !== true) : all;
    const isValid = !findings.some(({ severity }) => severity === 'error');
    if (isValid) session.logger.log('info', 'All validation tests have been completed successfully');
    session.logger.close();
    const toNamed = inSource(reference, isInPlace);
    if (format === 'text') {
      const limit = isOpm ? Infinity : undefined;
      await printFindings(context, findings, { limit, toNamed });
    } else {
      const diagnostics = findings.map(toNamed);
      const report: FindingsReport = {
        command: isOpm ? 'opmate alpha bundle validate' : 'opmate bundle validate',
        diagnostics,
        value: () => ({ findings: diagnostics.map(encodeFinding) }),
      };
      await writeReport(context, report, format);
    }
    if (isValid) return exitCodes.done;
    return isOpm ? exitCodes.failed : exitCodes.findings;
  },
});

function checkOptions(
  source: string | undefined,
  { tag, imageBuilder }: FlagValues<typeof validateFlags>,
): void {
  if (tag !== undefined && source !== undefined && tag !== source) {
    throw new UsageError(`${source}: --tag says ${tag}`, { hint: 'specify the bundle once' });
  }
  if (imageBuilder !== undefined && !builders.includes(imageBuilder)) {
    throw new UsageError(`unrecognized container-tool option: ${imageBuilder}`);
  }
}
