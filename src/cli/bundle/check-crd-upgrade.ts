import { argument, defineCommand } from '../command/declaration.js';
import { reportOutput } from '../command/shared-flags.js';
import { contentFlags, sourceForms } from './content-flags.js';
import path from 'node:path';
import {
  type CrdDiagnostic,
  checkCrdUpgrade,
  storedVersionWarnings,
} from '../../bundle/plain/crd-upgrade/crd-upgrade.js';
import { type Diagnostic, formatMessage } from '../../core/diagnostic.js';
import { type Manifest, readManifests, titleOf } from '../../kube/manifests.js';
import { OpmateError } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import type { BundleFile } from '../../bundle/read.js';
import { contentFileKind } from '../../source/content/file-kind.js';
import { statIfPresent } from '../../files/file-status.js';
import { exitCodes } from '../exit-codes.js';
import { readInputFile } from '../input.js';
import { count } from '../printable.js';
import { type Report, writeReport } from '../reports/report.js';
import { useSession } from '../session.js';
import { fileInSource, inSource, tellFindings, tellWarnings } from './findings.js';
import { type SourceOpener, pinValues, useSources } from '../../api/bundle/bundle-sources.js';

/**
 * `opmate bundle check-crd-upgrade`: whether the definitions of a file or bundle may take the place of older
 * ones. Findings go to stderr, or with `-o json|yaml` to stdout; exit code 3 where there are any.
 */
export const command = defineCommand({
  summary: 'check that CRDs can safely replace older ones',
  arguments: [
    argument('<old>', `file of definitions, or bundle: ${sourceForms}`),
    argument('<new>', 'the same'),
  ],
  flags: { ...contentFlags, output: reportOutput },
  examples: [
    [
      'Compare the definitions of two bundles',
      'opmate bundle check-crd-upgrade registry.example.com/demo/bundle:v1.0.0 ./bundle',
    ],
    ['Print the findings as data', 'opmate bundle check-crd-upgrade ./bundle ./bundle -o json'],
  ],
  async run({ context, args: [oldReference, newReference], options }) {
    const { output: format = 'text' } = options;
    return useSession(context, options, async (session) => {
      const { before, after, pins } = await useSources(session, options, async (sources) => ({
        before: await readDefinitions(oldReference, sources),
        after: await readDefinitions(newReference, sources),
        pins: sources.pins,
      }));
      const findings: Diagnostic[] = [...before.findings, ...after.findings];
      const isReadable = findings.length === 0;
      if (isReadable) {
        checkOverlap(oldReference, before.definitions, newReference, after.definitions);
        for (const crd of before.definitions) {
          const next = after.definitions.find(({ name }) => name === crd.name);
          if (next === undefined) {
            session.logger.log(
              'warn',
              `${titleOf(crd)}: is not in ${newReference}; it stays on the cluster as it is`,
            );
            continue;
          }
          const found = checkCrdUpgrade(crd, next);
          findings.push(...found);
          if (found.every(({ code }) => code !== 'form'))
            tellWarnings(session, storedVersionWarnings(crd, next));
        }
      }
      session.logger.close();
      const isData = format === 'json' || format === 'yaml';
      if (format === 'text' || (isData && !isReadable)) await tellFindings(context, findings);
      else {
        const report: Report = {
          command: 'opmate bundle check-crd-upgrade',
          diagnostics: findings,
          value: () => ({
            findings: (findings as CrdDiagnostic[]).map(valueOf),
            ...(pins.length > 0 && { sources: pinValues(pins) }),
          }),
        };
        await writeReport(context, report, format);
      }
      return findings.length > 0 ? exitCodes.findings : exitCodes.done;
    });
  },
});

/** Two files of different definitions are a slip, not an upgrade that nothing is wrong with. */
function checkOverlap(
  oldReference: string,
  before: readonly Manifest[],
  newReference: string,
  after: readonly Manifest[],
): void {
  const names = new Set(after.map(({ name }) => name));
  if (before.length === 0 || after.length === 0 || before.some(({ name }) => names.has(name))) return;
  throw new OpmateError('INVALID', `${newReference}: has none of the definitions of ${oldReference}`, {
    hint: 'name an older and a newer version of the same definitions',
  });
}

function valueOf(diagnostic: CrdDiagnostic): JsonObject {
  const { crd, version, property, code, file, line } = diagnostic;
  return {
    crd,
    ...(version !== undefined && { version }),
    ...(property !== undefined && { path: property }),
    check: code,
    message: formatMessage(diagnostic),
    ...(file !== undefined && { file }),
    ...(line !== undefined && { line }),
  };
}

/** The definitions in a file, or in a bundle from wherever it is. Throws OpmateError where there are none. */
async function readDefinitions(
  reference: string,
  sources: SourceOpener,
): Promise<{ definitions: Manifest[]; findings: Diagnostic[] }> {
  const isFile =
    (await statIfPresent(reference))?.isFile() === true && (await contentFileKind(reference)) !== 'archive';
  const { files, isInPlace } = isFile
    ? { files: [await readDefinitionFile(reference)], isInPlace: false }
    : await readManifestsOf(reference, sources);
  const prefix = isFile ? path.join(path.dirname(reference), '/') : 'manifests/';
  const { manifests, findings } = readManifests(files, { prefix: prefix === './' ? '' : prefix });
  const named = inSource(reference, isInPlace);
  const definitions = manifests
    .filter(({ kind }) => kind === 'CustomResourceDefinition')
    .map((manifest) =>
      isFile ? manifest : { ...manifest, file: fileInSource(reference, manifest.file, isInPlace) },
    );
  if (definitions.length === 0 && findings.length === 0 && isFile) {
    throw new OpmateError(
      'INVALID',
      `${reference}: holds no CustomResourceDefinition among ${count(manifests.length, 'object')}`,
      {
        hint: 'name a file of definitions, or a whole bundle',
      },
    );
  }
  return { definitions, findings: isFile ? findings : findings.map(named) };
}

async function readDefinitionFile(file: string): Promise<BundleFile> {
  return { name: path.basename(file), content: await readInputFile(file) };
}

async function readManifestsOf(
  reference: string,
  sources: SourceOpener,
): Promise<{ files: BundleFile[]; isInPlace: boolean }> {
  const { files, isInPlace } = await sources.readBundle(reference);
  return { files: files.manifests, isInPlace };
}
