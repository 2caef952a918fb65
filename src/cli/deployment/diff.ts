import { defineCommand } from '../command/declaration.js';
import { text, required } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { deploymentFlags, packageArgument } from './flags.js';
import { diffRender } from '../../api/deployment/deployment-objects.js';
import { encodeGoJson } from '../../document/go-json.js';
import type { EncodableJson } from '../../document/json.js';
import type { ChangedObject, FieldChange } from '../../cluster/documents/diff.js';
import { exitCodes } from '../exit-codes.js';
import { encodeData } from '../reports/encode-data.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { objectsOfDeployments } from './input.js';
import { printFindings } from '../bundle/findings.js';

/** `opmate deployment diff`; exit code 3 for differences. */
export const command = defineCommand({
  summary: 'show changes in the manifests of deployments; exit with 3 if there are any',
  arguments: [packageArgument],
  flags: {
    ...deploymentFlags,
    against: required(text('file|directory', 'earlier render to compare with', { group: 'Input' })),
    output: outputFormat(['diff', 'text', 'json', 'yaml'], { default: 'diff' }),
  },
  commonFlags: ['file', 'catalog', 'against', 'installNamespace', 'config', 'secrets', 'lock', 'output'],
  examples: {
    'Compare with an earlier render': 'opmate deployment diff -f deployment.yaml --against rendered.yaml',
    'Compare with a directory, as data':
      'opmate deployment diff -f deployment.yaml --against ./applied -o json',
  },
  async runInSession({ context, args: [packageName], options, session }) {
    const { output, against } = options;
    const { signal } = session;
    const newer = await objectsOfDeployments(context, session, { options, packageName });
    if (newer === undefined) return exitCodes.findings;
    const { changes, findings } = await diffRender(against, newer, session);
    if (findings.length > 0) await printFindings(context, findings);
    if (findings.length > 0) return exitCodes.findings;
    const text =
      output === 'json' || output === 'yaml'
        ? encodeData({ changes: changes.map(formatJson) }, output, { indent: 4 })
        : changes.map(output === 'diff' ? toUnified : formatLines).join('');
    await writeAll(context.stdout, output === 'json' || output === 'yaml' ? text : printable(text), signal);
    return changes.length === 0 ? exitCodes.done : exitCodes.findings;
  },
});

function titleOfChange({ kind, namespace, name }: ChangedObject): string {
  return `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
}

const removal = 'removes the definition, and with it all its objects';

function toUnified(change: ChangedObject): string {
  const title = titleOfChange(change);
  const note = change.removesDefinition ? `# ${removal}\n` : '';
  const [old, now] = [change.action === 'added', change.action === 'removed'].map((isGone) =>
    isGone ? '/dev/null' : title,
  );
  return `${note}--- ${old}\n+++ ${now}\n${change.diff}`;
}

const signs = { added: '+', removed: '-', changed: '~' } as const;
/** Maximum number of characters of a value: an image reference with its digest is shown whole. */
const maxValue = 200;

function formatLines(change: ChangedObject): string {
  const note = change.removesDefinition ? ` (${removal})` : '';
  const fields = change.fields.map((field) => `    ${field.path}: ${fieldText(field)}\n`).join('');
  return `${signs[change.action]} ${titleOfChange(change)}${note}\n${fields}`;
}

function fieldText(field: FieldChange): string {
  const [old, now] = [field.old, field.new].map((value) => value !== undefined && encodeGoJson(value));
  if (!old || !now) return old ? `removed ${cutText(old)}` : `added ${cutText(now || '')}`;
  // Long values are shown from shortly before their first difference.
  let same = 0;
  while (same < old.length && old[same] === now[same]) same++;
  const start = same > maxValue / 2 && Math.max(old.length, now.length) > maxValue ? same - 20 : 0;
  return `${cutText(old, start)} -> ${cutText(now, start)}`;
}

function cutText(text: string, start = 0): string {
  const end = start + maxValue;
  return `${start > 0 ? '…' : ''}${text.slice(start, end)}${text.length > end ? '…' : ''}`;
}

function formatJson({ fields, ...change }: ChangedObject): EncodableJson {
  return {
    ...change,
    fields: fields.map(({ path, old, new: now }) => ({
      path,
      ...(old !== undefined && { old }),
      ...(now !== undefined && { new: now }),
    })),
  };
}
