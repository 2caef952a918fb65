import { argument, defineCommand } from '../command/declaration.js';
import { outputFormat } from '../command/shared-flags.js';
import { contentFlags, sourceForms } from './content-flags.js';
import type { BundleSummary } from '../../bundle/summary.js';
import { formatDiagnostic } from '../../core/diagnostic.js';
import { encodeFinding } from '../reports/option-words.js';
import { encodeGoJson } from '../../document/go-json.js';
import { type JsonValue, asJson } from '../../document/json.js';
import { getObject } from '../../document/json-fields.js';
import { type BundleImage, showBundle } from '../../api/bundle/show-bundle.js';
import { pinValues } from '../../api/bundle/bundle-sources.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { encodeData } from '../reports/encode-data.js';
import { writeAll } from '../output.js';
import { type Paint, loadPaint } from '../paint.js';
import { amountOfBytes, count, printable } from '../printable.js';

/** `opmate bundle show`. Data is a `BundleSummary` with `image` (null if not in an image) and pinned `sources`. */
export const command = defineCommand({
  summary: 'show a bundle: versions, APIs, images, sizes and a permission summary',
  arguments: [argument('<source>', sourceForms)],
  flags: { ...contentFlags, output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }) },
  examples: {
    'Show a bundle directory': 'opmate bundle show ./bundle',
    'Show the bundle in an image as data':
      'opmate bundle show registry.example.com/demo/bundle:v1.0.0 -o json',
  },
  async runInSession({ context, args: [reference], options, session }) {
    const { output } = options;
    const { summary, image, pins } = await showBundle(reference, session, options);
    session.logger.close();
    const notes = summary.notes.map(encodeFinding);
    const value = asJson({ ...summary, notes, image: image ?? null, sources: pinValues(pins) });
    const text =
      output === 'text'
        ? await formatPage(context, summary, image)
        : encodeData(value, output, { indent: 4 });
    await writeAll(context.stdout, text, session.signal);
    return exitCodes.done;
  },
});

/** Row of the page; each item starts a line. */
type Row = [label: string, items: readonly string[], isBad?: boolean];

/** Maximum number of lines per list. */
const maxItems = 8;
const labelWidth = 14;
/** Width of output that is not a terminal: the same bundle results in the same bytes. */
const plainWidth = 100;
const minWidth = 40;

async function formatPage(
  context: CommandContext,
  summary: BundleSummary,
  image: BundleImage | undefined,
): Promise<string> {
  const { stdout } = context as { stdout: CommandContext['stderr'] };
  const paint = await loadPaint({ environment: context.environment, stderr: stdout });
  const width = stdout.isTTY === true ? Math.max(stdout.columns ?? plainWidth, minWidth) : plainWidth;
  const rows = toRows(summary, image);
  return rows.map((row) => textOfRow(row, width, paint)).join('');
}

function toRows(summary: BundleSummary, image: BundleImage | undefined): Row[] {
  const { upgrade, apis, sizes, notes } = summary;
  const release = summary.release === '' ? '' : `, release ${summary.release}`;
  const modes = summary.installModes;
  const bad = notes.filter(({ severity }) => severity === 'error');
  const odd = notes.filter(({ severity }) => severity === 'warning');
  const rows: Row[] = [
    ['bundle', [summary.name]],
    ['package', [summary.package]],
    ['version', [summary.version + release]],
    ['display name', [summary.displayName]],
    [
      'channels',
      [
        summary.channels
          .map((name) => (name === summary.defaultChannel ? `${name} (default)` : name))
          .join(', '),
      ],
    ],
    ['deprecated', summary.isDeprecated ? ['yes'] : [], true],
    ['replaces', [upgrade.replaces]],
    ['skips', [cut(upgrade.skips).join(', ')]],
    ['skip range', [upgrade.skipRange]],
    ['substitutes', [upgrade.substitutesFor]],
    ['install modes', [modes.length === 0 ? 'none' : modes.join(', ')], modes.length === 0],
    ['Kubernetes', [summary.minKubeVersion === '' ? '' : `${summary.minKubeVersion} or later`]],
    ['maturity', [summary.maturity]],
    ['provider', [summary.provider]],
    ['maintainers', [cut(summary.maintainers.map(maintainer)).join(', ')]],
    ['owns', cut(apis.owned.map(api))],
    ['requires', cut([...apis.required.map(api), ...summary.dependencies.map(dependency)])],
    ['properties', cut(summary.properties.map(({ type, value }) => `${type} ${brief(value)}`))],
    ['webhooks', cut(summary.webhooks.map(({ type, name }) => `${type.replace(/Webhook$/, '')} ${name}`))],
    ['images', cut(summary.images.map(imageLine))],
    ['permissions', permissionLines(summary)],
    [
      'size',
      [
        `${count(sizes.manifests.files, 'manifest')}, ${amountOfBytes(sizes.manifests.bytes)}` +
          ` (largest ${sizes.largest.file}, ${amountOfBytes(sizes.largest.bytes)})`,
        ...(image === undefined
          ? []
          : [
              `${count(image.layers.length, 'layer')}, ` +
                amountOfBytes(image.layers.reduce((sum, { size }) => sum + size, 0)),
            ]),
      ],
    ],
    ['digest', [image?.digest ?? '']],
    ['wrong', cut(bad.map(formatDiagnostic)), true],
    ['warning', cut(odd.map(formatDiagnostic))],
  ];
  return rows.filter(([, items]) => items.some((item) => item !== ''));
}

function cut(items: readonly string[]): string[] {
  if (items.length <= maxItems) return [...items];
  const more = items.length - maxItems + 1;
  return [...items.slice(0, maxItems - 1), `and ${more} more, which -o json shows`];
}

function maintainer({ name, email }: BundleSummary['maintainers'][number]): string {
  return [name, email === '' ? '' : `<${email}>`].filter((text) => text !== '').join(' ');
}

function api({ group, version, kind, type }: BundleSummary['apis']['owned'][number]): string {
  return `${kind} ${group === '' ? '' : `${group}/`}${version}${type === 'service' ? ' (API service)' : ''}`;
}

function dependency({ type, value }: BundleSummary['dependencies'][number]): string {
  const fields = getObject(value);
  const words = (...names: string[]): string =>
    names.flatMap((name) => (typeof fields[name] === 'string' ? [fields[name]] : [])).join(' ');
  switch (type) {
    case 'olm.package':
    case 'olm.package.required':
      return `package ${words('packageName', 'versionRange', 'version')}`;
    case 'olm.gvk':
      return `API ${words('kind', 'group', 'version')}`;
    case 'olm.label':
      return `label ${words('label')}`;
    case 'olm.constraint':
      return `constraint ${words('failureMessage') || brief(value)}`;
    default:
      return `${type} ${brief(value)}`;
  }
}

function brief(value: JsonValue): string {
  const text = encodeGoJson(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

function imageLine({ image, isOperator, isPinned }: BundleSummary['images'][number]): string {
  const notes = [...(isOperator ? ['operator'] : []), ...(isPinned ? [] : ['by tag'])];
  return notes.length === 0 ? image : `${image} (${notes.join(', ')})`;
}

function permissionLines({ permissions }: BundleSummary): string[] {
  if (permissions === null) return [];
  const lines = permissions.accounts.map(({ account, clusterRights, namespaceRights, risks }) => {
    const rights = [
      ...(clusterRights > 0 ? [count(clusterRights, 'cluster-wide rule')] : []),
      ...(namespaceRights > 0 ? [count(namespaceRights, 'namespaced rule')] : []),
    ];
    const held = rights.length === 0 ? 'none' : rights.join(', ');
    return `${account}: ${held}${risks.length === 0 ? '' : `; risks: ${risks.join(', ')}`}`;
  });
  return lines.length === 0 ? ['none'] : cut(lines);
}

function textOfRow([label, items, isBad = false]: Row, width: number, paint: Paint): string {
  const lines = items
    .filter((item) => item !== '')
    .flatMap((item) => wrap(printable(item).replace(/[\t\n]/g, ' '), width - labelWidth));
  return lines
    .map((line, index) => {
      const head = (index === 0 ? label : '').padEnd(labelWidth);
      return `${index === 0 ? paint.hint(head) : head}${isBad ? paint.error(line) : line}\n`;
    })
    .join('');
}

/** Wraps a text at blanks and indents further lines; longer words stay whole. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/ +/)) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line.trim() !== '' && [...longer].length > width) {
      lines.push(line);
      line = `  ${word}`;
    } else line = longer;
  }
  lines.push(line);
  return lines;
}
