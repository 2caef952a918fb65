import path from 'node:path';
import type { BundleFiles } from '../../bundle/read.js';
import type { ValidationDiagnostic } from '../../bundle/validate/diagnostic.js';
import {
  type OptionalValidator,
  optionalValidators,
  validateBundle,
} from '../../bundle/validate/validate-bundle.js';
import { formatMessage, withSubject } from '../../core/diagnostic.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { GoJsonError, encodeGoJson, parseGoJson, quoteGo } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { encodeYaml } from '../../document/yaml.js';
import { statIfExists } from '../../files/stat.js';
import { useSources } from './content.js';
import type { ContentFlags } from '../deployment/content-options.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { readInputFile } from '../input.js';
import { requireFlag } from '../options.js';
import { writeAll } from '../output.js';
import { type CommandSession, useSession } from '../session.js';
import { inSource, tellFindings } from './findings.js';

interface ValidateFlags extends ContentFlags {
  tag?: string;
  imageBuilder?: string;
  optionalValidators?: string[];
  output?: string;
  k8sVersion?: string;
}

const outputs: ReadonlySet<string> = new Set(['text', 'json', 'yaml']);
const builders: ReadonlySet<string> = new Set(['docker', 'podman', 'none']);

/**
 * `opmate bundle validate`: what is wrong with a bundle, on stderr, or with `--output json|yaml` on stdout. Errors
 * make the exit code 3, in `alpha bundle`, where `isOpm`, 1. There warnings that `opm` keeps to itself are not told.
 */
export async function bundleValidate(
  context: CommandContext,
  source: string | undefined,
  given: GlobalOptions,
  isOpm: boolean,
): Promise<number> {
  const options = given as ValidateFlags;
  const { output, optional } = checkOptions(source, options);
  const reference = requireFlag(options.tag ?? source, 'tag');
  const categories = await readCategories(context.environment['OPERATOR_BUNDLE_CATEGORIES']);
  return useSession(context, options, async (session) => {
    const read = await readFiles(reference, options, session);
    const { k8sVersion } = options;
    const { signal } = session;
    const all =
      read.files === undefined
        ? read.findings
        : validateBundle(read.files, { optional, k8sVersion, categories, signal });
    const findings = isOpm ? all.filter(({ isUntold }) => isUntold !== true) : all;
    const isValid = !findings.some(({ severity }) => severity === 'error');
    if (isValid) session.logger.log('info', 'All validation tests have been completed successfully');
    session.logger.close();
    if (output === 'text') {
      const named = inSource(reference, read.isInPlace);
      await tellFindings(
        context,
        findings.map((finding) => named(withSubject(finding, finding.severity))),
      );
    } else {
      const value = { findings: findings.map(valueOf) };
      const text = output === 'json' ? `${encodeGoJson(value, { indent: 2 })}\n` : encodeYaml(value);
      await writeAll(context.stdout, text, signal);
    }
    if (isValid) return exitCodes.done;
    return isOpm ? exitCodes.failed : exitCodes.findings;
  });
}

/** `-o` is the flag of `opm` for validators; no validator is called like a format. */
function checkOptions(
  source: string | undefined,
  { tag, imageBuilder, optionalValidators: names = [], ...options }: ValidateFlags,
): { output: string; optional: OptionalValidator[] } {
  if (tag !== undefined && source !== undefined && tag !== source) {
    throw new UsageError(`${source}: --tag says ${tag}`, { hint: 'name the bundle once' });
  }
  if (imageBuilder !== undefined && !builders.has(imageBuilder)) {
    throw new UsageError(`unrecognized container-tool option: ${imageBuilder}`);
  }
  const output = options.output ?? names.findLast((name) => outputs.has(name)) ?? 'text';
  if (!outputs.has(output)) {
    throw new UsageError(`invalid --output value ${quoteGo(output)}, expected (text|json|yaml)`);
  }
  const optional: OptionalValidator[] = [];
  for (const name of names) {
    const known = optionalValidators.find((one) => one === name);
    if (known !== undefined) optional.push(known);
    else if (!outputs.has(name)) {
      throw new UsageError(`there is no validator ${quoteGo(name)}`, {
        hint: `optional validators are ${optionalValidators.join(', ')}`,
      });
    }
  }
  return { output, optional };
}

/** Categories in a file, `{"categories": […]}`, in place of those of operatorhub.io. Throws OpmateError. */
async function readCategories(file: string | undefined): Promise<ReadonlySet<string> | undefined> {
  if (file === undefined || file === '') return undefined;
  const content = await readInputFile(file);
  const fail = (problem: string): OpmateError =>
    new OpmateError('INVALID', `${file}: ${problem}`, {
      hint: 'OPERATOR_BUNDLE_CATEGORIES names a file such as {"categories": ["Database"]}',
      file,
    });
  try {
    const value = parseGoJson(content.toString('utf8'));
    const list = isJsonObject(value) ? (value['categories'] ?? []) : undefined;
    if (!Array.isArray(list) || !list.every((one) => typeof one === 'string')) {
      throw fail('expected a list of categories');
    }
    return new Set(list as string[]);
  } catch (error) {
    if (error instanceof GoJsonError) throw fail(error.message);
    throw error;
  }
}

type ReadFiles = { isInPlace: boolean } & (
  { files: BundleFiles } | { files: undefined; findings: ValidationDiagnostic[] }
);

/** A directory that lacks one of the two that a bundle has is told of both. */
async function readFiles(
  reference: string,
  flags: ContentFlags,
  session: CommandSession,
): Promise<ReadFiles> {
  if ((await statIfExists(reference))?.isDirectory() === true) {
    const findings: ValidationDiagnostic[] = [];
    for (const part of ['manifests', 'metadata']) {
      if ((await statIfExists(path.join(reference, part)))?.isDirectory() === true) continue;
      findings.push({ severity: 'error', code: 'format', problem: `Unable to locate ${part} directory` });
    }
    if (findings.length > 0) return { isInPlace: true, files: undefined, findings };
  }
  return useSources(session, flags, (sources) => sources.readBundle(reference));
}

function valueOf(diagnostic: ValidationDiagnostic): JsonObject {
  const { severity, code, file, line } = diagnostic;
  return {
    level: severity,
    validator: code,
    message: formatMessage(diagnostic),
    ...(file !== undefined && { file }),
    ...(line !== undefined && { line }),
  };
}
