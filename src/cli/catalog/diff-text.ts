import type {
  BundleChange,
  CatalogDiff,
  Change,
  ChannelChange,
  Deprecation,
  EdgeChange,
  ListChange,
  OtherBlob,
  PackageChange,
} from '../../catalog/diff/diff.js';
import { quoteGo } from '../../document/go-json.js';
import { schemas } from '../../model/declarative-config.js';
import { count } from '../printable.js';

/** Line of a difference with its detail lines. */
interface Line {
  sign: '+' | '-' | '~';
  text: string;
  details: string[];
}

interface Section {
  heading: string;
  /** Singular. */
  noun: string;
  lines: Line[];
}

/** Returns a difference of catalogs as text: one line per difference below the heading of its kind, and totals. */
export function diffText(diff: CatalogDiff): string {
  const sections = toSections(diff, shown);
  if (sections.length === 0) return 'no difference\n';
  const parts = sections.map(({ heading, lines }) =>
    [
      heading,
      ...lines.flatMap(({ sign, text, details }) => [
        `${sign} ${text}`,
        ...details.map((name) => `    ${name}`),
      ]),
      '',
    ].join('\n'),
  );
  return `${parts.join('\n')}\n${getSum(sections)}\n`;
}

/** Returns a difference of catalogs as Markdown: a table of totals, and one collapsible section per kind. */
export function diffMarkdown(diff: CatalogDiff): string {
  const sections = toSections(diff, code);
  if (sections.length === 0) return '**No difference between the catalogs.**\n';
  const rows = sections.map(({ heading, lines }) => {
    const of = (sign: Line['sign']): number => lines.filter((line) => line.sign === sign).length;
    return `| ${heading} | ${of('+')} | ${of('-')} | ${of('~')} |`;
  });
  const signs = { '+': 'added', '-': 'removed', '~': 'changed' };
  const parts = sections.map(({ heading, lines }) =>
    [
      `<details><summary>${heading} (${lines.length})</summary>`,
      '',
      ...lines.flatMap(({ sign, text, details }) => [
        `- ${signs[sign]} ${text}`,
        ...details.map((name) => `  - ${name}`),
      ]),
      '',
      '</details>',
      '',
    ].join('\n'),
  );
  return ['| | added | removed | changed |', '|---|---:|---:|---:|', ...rows, '', ...parts].join('\n');
}

type Show = (name: string) => string;

function toSections(diff: CatalogDiff, show: Show): Section[] {
  const { packages, channels, bundles, images, deprecations, others } = diff;
  const inPackage = (item: { package: string }, name: string): string =>
    `${show(item.package)} ${show(name)}`;
  const plain = (text: string): Omit<Line, 'sign'> => ({ text, details: [] });
  const sections: Section[] = [
    section(
      'packages',
      'package',
      listed(packages, (name) => plain(show(name))),
      packages.changed.map((change) => packageLine(change, show)),
    ),
    section(
      'channels',
      'channel',
      listed(channels, (channelState) =>
        plain(
          `${inPackage(channelState, channelState.channel)}: ${channelState.entries === 1 ? '1 entry' : `${channelState.entries} entries`}${channelState.head === '' ? '' : `, head ${show(channelState.head)}`}`,
        ),
      ),
      channels.changed.map((change) => channelLine(change, inPackage(change, change.channel), show)),
    ),
    section(
      'bundles',
      'bundle',
      listed(bundles, (bundleState) =>
        plain(`${inPackage(bundleState, bundleState.bundle)}: ${show(bundleState.image || 'no image')}`),
      ),
      bundles.changed.map((change) => bundleLine(change, inPackage(change, change.bundle), show)),
    ),
    section(
      'images',
      'image',
      listed(images, (name) => plain(show(name))),
      [],
    ),
    section(
      'deprecations',
      'deprecation',
      listed(deprecations, (deprecation) =>
        plain(`${deprecated(deprecation, show)}: ${show(deprecation.message)}`),
      ),
      deprecations.changed.map((change) => ({
        sign: '~',
        text: deprecated(change, show),
        details: [changeText('message', change.message, show)],
      })),
    ),
    section(
      'other blobs',
      'other blob',
      listed(others, (blob) => plain(otherText(blob, show))),
      others.changed.map((blob) => ({ sign: '~', ...plain(otherText(blob, show)) })),
    ),
  ];
  return sections.filter(({ lines }) => lines.length > 0);
}

function section(heading: string, noun: string, lines: Line[], changed: Line[]): Section {
  return { heading, noun, lines: [...lines, ...changed] };
}

function listed<T>({ added, removed }: ListChange<T>, describe: (item: T) => Omit<Line, 'sign'>): Line[] {
  return [
    ...added.map((item): Line => ({ sign: '+', ...describe(item) })),
    ...removed.map((item): Line => ({ sign: '-', ...describe(item) })),
  ];
}

function packageLine({ package: name, defaultChannel, fields }: PackageChange, show: Show): Line {
  const details = [
    ...(defaultChannel ? [changeText('default channel', defaultChannel, show)] : []),
    ...fields.map((field) => `${field} differs`),
  ];
  return { sign: '~', text: show(name), details };
}

function channelLine({ head, entries, edges, properties }: ChannelChange, text: string, show: Show): Line {
  const details = [
    ...(head ? [changeText('head', head, show)] : []),
    ...listText('entry', entries, show),
    ...edges.flatMap((edge) => edgeTexts(edge, show)),
    ...(properties ? ['properties differ'] : []),
  ];
  return { sign: '~', text, details };
}

function edgeTexts({ bundle, replaces, skips, skipRange }: EdgeChange, show: Show): string[] {
  return [
    ...(replaces ? [changeText(`${show(bundle)} replaces`, replaces, show)] : []),
    ...(skips ? listText(`${show(bundle)} skips`, skips, show) : []),
    ...(skipRange ? [changeText(`${show(bundle)} skipRange`, skipRange, show)] : []),
  ];
}

function bundleLine(
  { version, image, relatedImages, properties }: BundleChange,
  text: string,
  show: Show,
): Line {
  const details = [
    ...(version ? [changeText('version', version, show)] : []),
    ...(image ? [changeText('image', image, show)] : []),
    ...(relatedImages ? listText('related image', relatedImages, show) : []),
    ...(properties
      ? [
          ...listText('property', properties, show),
          ...properties.changed.map((type) => `property ${show(type)} differs`),
        ]
      : []),
  ];
  return { sign: '~', text, details };
}

function listText(noun: string, { added, removed }: ListChange, show: Show): string[] {
  return [
    ...added.map((name) => `${noun} + ${show(name)}`),
    ...removed.map((name) => `${noun} - ${show(name)}`),
  ];
}

function changeText(noun: string, { from, to }: Change, show: Show): string {
  const side = (text: string): string => (text === '' ? 'none' : show(text));
  return `${noun}: ${side(from)} -> ${side(to)}`;
}

function deprecated(
  { package: packageName, schema, name }: Omit<Deprecation, 'message'>,
  show: Show,
): string {
  if (schema === schemas.package) return `package ${show(packageName)}`;
  return `${show(packageName)} ${schema === schemas.channel ? 'channel' : 'bundle'} ${show(name)}`;
}

function otherText({ package: packageName, schema, name }: OtherBlob, show: Show): string {
  return [packageName, schema, name]
    .filter((part) => part !== '')
    .map(show)
    .join(' ');
}

function getSum(sections: readonly Section[]): string {
  return sections.map(({ noun, lines }) => count(lines.length, noun)).join(', ');
}

/** Names come from catalogs and may contain line breaks. */
function shown(name: string): string {
  return /^[\x20-\x7e]+$/.test(name) ? name : quoteGo(name);
}

/** Returns a name as Markdown code. */
function code(name: string): string {
  const text = shown(name);
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const pad = longest > 0 ? ' ' : '';
  return `${fence}${pad}${text}${pad}${fence}`;
}
