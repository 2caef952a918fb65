import type {
  BundleChange,
  CatalogDiff,
  Change,
  ChannelChange,
  DeprecationState,
  EdgeChange,
  ListChange,
  BlobKey,
  PackageChange,
} from '../../catalog/diff/diff.js';
import { quoteIfNeeded } from '../../core/go-json-quote.js';
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
  const sections = toSections(diff, quoteIfNeeded);
  if (sections.length === 0) return 'no differences\n';
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
  const inPackage = (item: { package: string }, name: string): string =>
    `${show(item.package)} ${show(name)}`;
  const sections: Section[] = [
    section('packages', 'package', diff.packages, show, (change) => packageLine(change, show)),
    section(
      'channels',
      'channel',
      diff.channels,
      ({ channel, entries, head, ...item }) =>
        `${inPackage(item, channel)}: ${count(entries, 'entry')}${head === '' ? '' : `, head ${show(head)}`}`,
      (change) => channelLine(change, inPackage(change, change.channel), show),
    ),
    section(
      'bundles',
      'bundle',
      diff.bundles,
      ({ bundle, image, ...item }) => `${inPackage(item, bundle)}: ${show(image || 'no image')}`,
      (change) => bundleLine(change, inPackage(change, change.bundle), show),
    ),
    section('images', 'image', { ...diff.images, changed: [] }, show, plain),
    section(
      'deprecations',
      'deprecation',
      diff.deprecations,
      (deprecation) => `${deprecated(deprecation, show)}: ${show(deprecation.message)}`,
      (change) => ({
        text: deprecated(change, show),
        details: [changeText('message', change.message, show)],
      }),
    ),
    section(
      'other blobs',
      'other blob',
      diff.others,
      (blob) => otherText(blob, show),
      (blob) => plain(otherText(blob, show)),
    ),
  ];
  return sections.filter(({ lines }) => lines.length > 0);
}

function plain(text: string): Omit<Line, 'sign'> {
  return { text, details: [] };
}

function section<T, C>(
  heading: string,
  noun: string,
  { added, removed, changed }: ListChange<T> & { changed: C[] },
  describe: (item: T) => string,
  describeChange: (change: C) => Omit<Line, 'sign'>,
): Section {
  const lines = [
    ...added.map((item): Line => ({ sign: '+', ...plain(describe(item)) })),
    ...removed.map((item): Line => ({ sign: '-', ...plain(describe(item)) })),
    ...changed.map((change): Line => ({ sign: '~', ...describeChange(change) })),
  ];
  return { heading, noun, lines };
}

function packageLine(
  { package: name, defaultChannel, fields }: PackageChange,
  show: Show,
): Omit<Line, 'sign'> {
  const details = [
    ...(defaultChannel ? [changeText('default channel', defaultChannel, show)] : []),
    ...fields.map((field) => `${field} differs`),
  ];
  return { text: show(name), details };
}

function channelLine(
  { head, entries, edges, properties }: ChannelChange,
  text: string,
  show: Show,
): Omit<Line, 'sign'> {
  const details = [
    ...(head ? [changeText('head', head, show)] : []),
    ...listText('entry', entries, show),
    ...edges.flatMap((edge) => edgeTexts(edge, show)),
    ...(properties ? ['properties differ'] : []),
  ];
  return { text, details };
}

function edgeTexts({ bundle, replaces, skips, skipRange }: EdgeChange, show: Show): string[] {
  return [
    ...(replaces ? [changeText(`${show(bundle)} replaces`, replaces, show)] : []),
    ...(skips ? skipsText(`${show(bundle)} skips`, skips, show) : []),
    ...(skipRange ? [changeText(`${show(bundle)} skipRange`, skipRange, show)] : []),
  ];
}

/** Maximum number of added or removed skips of an entry with a line each: the head of a channel may skip all others. */
const maxListedSkips = 5;

/** Returns a line per skip, or one line with their number and the first ones. */
function skipsText(noun: string, { added, removed }: ListChange, show: Show): string[] {
  return [['+', added] as const, ['-', removed] as const].flatMap(([sign, names]) => {
    if (names.length <= maxListedSkips) return names.map((name) => `${noun} ${sign} ${show(name)}`);
    const first = names.slice(0, maxListedSkips - 2).map(show);
    return [`${noun} ${sign} ${count(names.length, 'entry')}: ${first.join(', ')}, …`];
  });
}

function bundleLine(
  { version, image, relatedImages, properties }: BundleChange,
  text: string,
  show: Show,
): Omit<Line, 'sign'> {
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
  return { text, details };
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
  { package: packageName, schema, name }: Omit<DeprecationState, 'message'>,
  show: Show,
): string {
  if (schema === schemas.package) return `package ${show(packageName)}`;
  return `${show(packageName)} ${schema === schemas.channel ? 'channel' : 'bundle'} ${show(name)}`;
}

function otherText({ package: packageName, schema, name }: BlobKey, show: Show): string {
  return [packageName, schema, name]
    .filter((part) => part !== '')
    .map(show)
    .join(' ');
}

function getSum(sections: readonly Section[]): string {
  return sections.map(({ noun, lines }) => count(lines.length, noun)).join(', ');
}

function code(name: string): string {
  const text = quoteIfNeeded(name);
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const pad = longest > 0 ? ' ' : '';
  return `${fence}${pad}${text}${pad}${fence}`;
}
