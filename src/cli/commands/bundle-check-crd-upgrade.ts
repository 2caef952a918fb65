import path from 'node:path';
import { type CrdFinding, checkCrdUpgrade, storedVersionWarnings } from '../../bundle/plain/crd-upgrade.js';
import type { Finding } from '../../bundle/plain/finding.js';
import { type Manifest, readManifests, titleOf } from '../../bundle/plain/manifests.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { encodeGoJson, quoteGo } from '../../core/go-json.js';
import type { JsonObject } from '../../core/json.js';
import { encodeYaml } from '../../core/yaml.js';
import { statIfThere } from '../../source/source.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { readInputFile } from '../input.js';
import { writeAll } from '../output.js';
import { count } from '../printable.js';
import { type CommandSession, useSession } from '../session.js';
import { inSource, tellFindings, tellWarnings } from './bundle-findings.js';
import { readBundle } from '../bundle-content.js';

interface CheckOptions extends GlobalOptions {
  output?: string;
}

const outputs: ReadonlySet<string> = new Set(['text', 'json', 'yaml']);

/**
 * `opmate bundle check-crd-upgrade`: whether the definitions of a file or bundle may take the place of older
 * ones. Findings go to stderr, or with `-o json|yaml` to stdout; exit code 3 where there are any.
 */
export async function bundleCheckCrdUpgrade(
  context: CommandContext,
  oldReference: string,
  newReference: string,
  given: GlobalOptions,
): Promise<number> {
  const { output = 'text' } = given as CheckOptions;
  if (!outputs.has(output)) {
    throw new UsageError(`invalid --output value ${quoteGo(output)}, expected (text|json|yaml)`);
  }
  return useSession(context, given, async (session) => {
    const before = await readDefinitions(oldReference, session);
    const after = await readDefinitions(newReference, session);
    const findings: Finding[] = [...before.findings, ...after.findings];
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
        if (found.every(({ check }) => check !== 'form'))
          tellWarnings(session, storedVersionWarnings(crd, next));
      }
    }
    session.logger.close();
    if (!isReadable || output === 'text') await tellFindings(context, findings);
    if (isReadable && output !== 'text') {
      const value = { findings: (findings as CrdFinding[]).map(valueOf) };
      const text = output === 'json' ? `${encodeGoJson(value, { indent: 2 })}\n` : encodeYaml(value);
      await writeAll(context.stdout, text);
    }
    return findings.length > 0 ? exitCodes.findings : exitCodes.done;
  });
}

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

function valueOf(finding: CrdFinding): JsonObject {
  const value: JsonObject = {};
  for (const key of ['crd', 'version', 'path', 'check', 'message', 'file', 'line'] as const) {
    if (finding[key] !== undefined) value[key] = finding[key];
  }
  return value;
}

/** The definitions in a file, or in a bundle from wherever it is. Throws OpmateError where there are none. */
async function readDefinitions(
  reference: string,
  session: CommandSession,
): Promise<{ definitions: Manifest[]; findings: Finding[] }> {
  const stat = await statIfThere(reference);
  const isFile = stat?.isFile() === true;
  const isDirectory = stat?.isDirectory() === true;
  const files = isFile
    ? [{ name: path.basename(reference), content: await readInputFile(reference) }]
    : (await readBundle(reference, isDirectory, session)).manifests;
  const prefix = isFile ? path.join(path.dirname(reference), '/') : 'manifests/';
  const { manifests, findings } = readManifests(files, { prefix: prefix === './' ? '' : prefix });
  const named = inSource(reference, isDirectory);
  const definitions = manifests
    .filter(({ kind }) => kind === 'CustomResourceDefinition')
    .map((manifest) =>
      isFile ? manifest : { ...manifest, file: named({ message: '', file: manifest.file }).file as string },
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
