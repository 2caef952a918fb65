import { argument, defineCommand } from '../command/declaration.js';
import { outputFormat } from '../command/shared-flags.js';
import { contentFlags, sourceForms } from './content-flags.js';
import { type BundleSummary, summarizeBundle } from '../../bundle/summary.js';
import { formatDiagnostic } from '../../core/diagnostic.js';
import { redact } from '../../core/errors.js';
import { encodeGoJson } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { encodeYaml } from '../../document/yaml.js';
import type { Pin } from '../../source/content/content-types.js';
import { withImage } from '../../source/drivers/image.js';
import { pinValues, useSources } from '../../api/bundle/bundle-sources.js';
import type { ContentFlags } from './content-flags.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { type Paint, loadPaint } from '../paint.js';
import { amountOfBytes, count, printable } from '../printable.js';
import { type CommandSession, useSession } from '../session.js';

/** The image that a bundle was read from. */
interface ShownImage {
  /** Digest of what the reference names. */
  digest: string;
  layers: { digest: string; size: number }[];
}

/**
 * `opmate bundle show`: what a bundle is, on one screen; as JSON or YAML all of it: a `BundleSummary`, `image` with
 * digest and layers, null where the bundle is in none, and `sources`, what was read, pinned.
 */
export const command = defineCommand({
  summary: 'show a bundle: versions, APIs, images, sizes, permissions in brief',
  arguments: [argument('<source>', sourceForms)],
  flags: { ...contentFlags, output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }) },
  examples: [
    ['Show a bundle directory', 'opmate bundle show ./bundle'],
    [
      'Show the bundle in an image as data',
      'opmate bundle show registry.example.com/demo/bundle:v1.0.0 -o json',
    ],
  ],
  async run({ context, args: [reference], options }) {
    const { output } = options;
    return useSession(context, options, async (session) => {
      const { files, image, pins } = await useSources(session, options, async (sources) => {
        const read = await sources.readBundle(reference);
        return { ...read, image: await lookAtImage(read.pins, options, session) };
      });
      session.logger.close();
      const summary = summarizeBundle(files, { subject: redact(reference) });
      const value = { ...summary, image: image ?? null, sources: pinValues(pins) } as unknown as JsonObject;
      const text =
        output === 'json'
          ? `${encodeGoJson(value, { indent: 4 })}\n`
          : output === 'yaml'
            ? encodeYaml(value)
            : await pageOf(context, summary, image);
      await writeAll(context.stdout, text, session.signal);
      return exitCodes.done;
    });
  },
});

/** Digest and layers of the image that a bundle was read from; undefined where it was not from one alone. */
async function lookAtImage(
  pins: readonly Pin[],
  options: ContentFlags,
  session: CommandSession,
): Promise<ShownImage | undefined> {
  const [pin] = pins;
  // Credentials of a Secret are for reading the files alone.
  if (pin?.type !== 'image' || options.secret !== undefined) return undefined;
  return withImage(pin.ref, session, ({ root, manifest }) =>
    Promise.resolve({
      digest: root.digest,
      layers: manifest.layers.map(({ digest, size }) => ({ digest, size })),
    }),
  );
}

/** A line of the page: what it is about, and what there is to say, each on a line of its own. */
type Row = [label: string, items: readonly string[], isBad?: boolean];

/** Lines that one list may take; the rest is counted. */
const maxItems = 8;
const labelWidth = 14;
/** Where nobody looks at it, so that the same bundle gives the same bytes. */
const plainWidth = 100;
const minWidth = 40;

async function pageOf(
  context: CommandContext,
  summary: BundleSummary,
  image: ShownImage | undefined,
): Promise<string> {
  const { stdout } = context as { stdout: CommandContext['stderr'] };
  const paint = await loadPaint({ ...context, stderr: stdout });
  const width = stdout.isTTY === true ? Math.max(stdout.columns ?? plainWidth, minWidth) : plainWidth;
  const rows = rowsOf(summary, image);
  return rows.map((row) => textOfRow(row, width, paint)).join('');
}

function rowsOf(summary: BundleSummary, image: ShownImage | undefined): Row[] {
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
    ['wrong', cut(bad.map(noteText)), true],
    ['odd', cut(odd.map(noteText))],
  ];
  return rows.filter(([, items]) => items.some((item) => item !== ''));
}

function noteText({ message, ...note }: BundleSummary['notes'][number]): string {
  return formatDiagnostic({ ...note, code: 'note', problem: message });
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
  const fields = isJsonObject(value) ? value : {};
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
  const said = [...(isOperator ? ['operator'] : []), ...(isPinned ? [] : ['by tag'])];
  return said.length === 0 ? image : `${image} (${said.join(', ')})`;
}

function permissionLines({ permissions }: BundleSummary): string[] {
  if (permissions === null) return [];
  const lines = permissions.accounts.map(({ account, clusterRights, namespaceRights, risks }) => {
    const rights = [
      ...(clusterRights > 0 ? [`${clusterRights} in the cluster`] : []),
      ...(namespaceRights > 0 ? [`${namespaceRights} in namespaces`] : []),
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

/** Breaks a text at blanks; further lines are indented. A word that is longer than a line stays whole. */
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
