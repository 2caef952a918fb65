import { stat } from 'node:fs/promises';
import type { PlainObject } from '../../kube/object.js';
import { readPlainDirectory, readPlainFiles } from '../../bundle/plain/plain-directory.js';
import { UsageError, fileError } from '../../core/errors.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import type { EncodableJson, JsonValue } from '../../document/json.js';
import { type FieldChange, type ObjectChange, diffObjects } from '../../deployment/diff.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import type { DeploymentOptions } from './input.js';
import { exitCodes } from '../exit-codes.js';
import { readInputFile } from '../input.js';
import { requireFlag } from '../options.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { type CommandSession, useSession } from '../session.js';
import { objectsOfDeployments } from './render.js';
import { inSource, tellFindings } from '../bundle/findings.js';

interface DeploymentDiffOptions extends DeploymentOptions {
  against?: string;
  output?: string;
}

const formats = ['diff', 'text', 'json'];

/**
 * `opmate bundle deployment diff`: what of the manifests of deployments is not as it was rendered before. Exit code 0
 * where nothing is, 3 where something is.
 */
export async function bundleDeploymentDiff(context: CommandContext, given: GlobalOptions): Promise<number> {
  const options = given as DeploymentDiffOptions;
  const { output = 'diff' } = options;
  if (!formats.includes(output)) {
    throw new UsageError(`invalid --output value ${quoteGo(output)}, expected (${formats.join('|')})`);
  }
  const against = requireFlag(options.against, 'against');
  return useSession(context, options, async (session) => {
    const { signal } = session;
    const older = await readRender(against, session);
    const newer = await objectsOfDeployments(context, session, options);
    if (older.findings.length > 0) await tellFindings(context, older.findings);
    if (older.findings.length > 0 || newer === undefined) return exitCodes.findings;
    const changes = diffObjects(older.objects, newer, { signal });
    const text =
      output === 'json'
        ? `${encodeGoJson({ changes: changes.map(jsonOf) }, { indent: 4 })}\n`
        : changes.map(output === 'diff' ? unifiedOf : linesOf).join('');
    await writeAll(context.stdout, output === 'json' ? text : printable(text), signal);
    return changes.length === 0 ? exitCodes.done : exitCodes.findings;
  });
}

/** What was rendered before: a file, or a directory as `--output-dir` writes it. */
async function readRender(
  place: string,
  { signal, followLinks }: CommandSession,
): Promise<{ objects: PlainObject[]; findings: Parameters<typeof tellFindings>[1] }> {
  const found = await stat(place).catch((error: unknown) => {
    throw fileError(`open ${place}`, error);
  });
  if (found.isDirectory()) {
    const { objects, findings } = await readPlainDirectory(place, { signal, followLinks });
    return { objects, findings: findings.map(inSource(place, true)) };
  }
  return readPlainFiles([{ name: place, content: await readInputFile(place) }], { prefix: '' });
}

function titleOfChange({ kind, namespace, name }: ObjectChange): string {
  return `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
}

const removal = 'removes the definition, and with it all its objects';

function unifiedOf(change: ObjectChange): string {
  const title = titleOfChange(change);
  const note = change.removesDefinition ? `# ${removal}\n` : '';
  const [old, now] = [change.action === 'added', change.action === 'removed'].map((isGone) =>
    isGone ? '/dev/null' : title,
  );
  return `${note}--- ${old}\n+++ ${now}\n${change.diff}`;
}

const signs = { added: '+', removed: '-', changed: '~' } as const;
/** Characters of a value that a line shows. */
const maxValue = 100;

function linesOf(change: ObjectChange): string {
  const note = change.removesDefinition ? ` (${removal})` : '';
  const fields = change.fields.map((field) => `    ${field.path}: ${fieldText(field)}\n`).join('');
  return `${signs[change.action]} ${titleOfChange(change)}${note}\n${fields}`;
}

function fieldText(field: FieldChange): string {
  if (field.old === undefined) return `added ${valueText(field.new)}`;
  if (field.new === undefined) return `removed ${valueText(field.old)}`;
  return `${valueText(field.old)} -> ${valueText(field.new)}`;
}

function valueText(value: JsonValue | undefined): string {
  const text = encodeGoJson(value ?? null);
  return text.length > maxValue ? `${text.slice(0, maxValue)}…` : text;
}

function jsonOf({ fields, ...change }: ObjectChange): EncodableJson {
  return {
    ...change,
    fields: fields.map(({ path, old, new: now }) => ({
      path,
      ...(old !== undefined && { old }),
      ...(now !== undefined && { new: now }),
    })),
  };
}
