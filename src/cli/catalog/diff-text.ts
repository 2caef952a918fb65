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

/** A difference as a line, and lines that say more of it. */
interface Line {
  sign: '+' | '-' | '~';
  text: string;
  details: string[];
}

interface Section {
  heading: string;
  /** Of one. */
  noun: string;
  lines: Line[];
}

/** A difference of catalogs for the terminal: a line a difference below the heading of its kind, and sums. */
export function diffText(diff: CatalogDiff): string {
  const sections = sectionsOf(diff, shown);
  if (sections.length === 0) return 'no difference\n';
  const parts = sections.map(({ heading, lines }) =>
    [
      heading,
      ...lines.flatMap(({ sign, text, details }) => [
        `${sign} ${text}`,
        ...details.map((one) => `    ${one}`),
      ]),
      '',
    ].join('\n'),
  );
  return `${parts.join('\n')}\n${sumOf(sections)}\n`;
}

/** The same for a pull request: a table of sums, and each kind in a part that opens. */
export function diffMarkdown(diff: CatalogDiff): string {
  const sections = sectionsOf(diff, code);
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
        ...details.map((one) => `  - ${one}`),
      ]),
      '',
      '</details>',
      '',
    ].join('\n'),
  );
  return ['| | added | removed | changed |', '|---|---:|---:|---:|', ...rows, '', ...parts].join('\n');
}

type Show = (name: string) => string;

function sectionsOf(diff: CatalogDiff, show: Show): Section[] {
  const { packages, channels, bundles, images, deprecations, others } = diff;
  const inPackage = (one: { package: string }, name: string): string => `${show(one.package)} ${show(name)}`;
  const plain = (text: string): Omit<Line, 'sign'> => ({ text, details: [] });
  const sections: Section[] = [
    section(
      'packages',
      'package',
      listed(packages, (name) => plain(show(name))),
      packages.changed.map((one) => packageLine(one, show)),
    ),
    section(
      'channels',
      'channel',
      listed(channels, (one) =>
        plain(
          `${inPackage(one, one.channel)}: ${one.entries === 1 ? '1 entry' : `${one.entries} entries`}${one.head === '' ? '' : `, head ${show(one.head)}`}`,
        ),
      ),
      channels.changed.map((one) => channelLine(one, inPackage(one, one.channel), show)),
    ),
    section(
      'bundles',
      'bundle',
      listed(bundles, (one) => plain(`${inPackage(one, one.bundle)}: ${show(one.image || 'no image')}`)),
      bundles.changed.map((one) => bundleLine(one, inPackage(one, one.bundle), show)),
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
      listed(deprecations, (one) => plain(`${deprecated(one, show)}: ${show(one.message)}`)),
      deprecations.changed.map((one) => ({
        sign: '~',
        text: deprecated(one, show),
        details: [changeText('message', one.message, show)],
      })),
    ),
    section(
      'other blobs',
      'other blob',
      listed(others, (one) => plain(otherText(one, show))),
      others.changed.map((one) => ({ sign: '~', ...plain(otherText(one, show)) })),
    ),
  ];
  return sections.filter(({ lines }) => lines.length > 0);
}

function section(heading: string, noun: string, lines: Line[], changed: Line[]): Section {
  return { heading, noun, lines: [...lines, ...changed] };
}

function listed<T>({ added, removed }: ListChange<T>, describe: (one: T) => Omit<Line, 'sign'>): Line[] {
  return [
    ...added.map((one): Line => ({ sign: '+', ...describe(one) })),
    ...removed.map((one): Line => ({ sign: '-', ...describe(one) })),
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
  return [...added.map((one) => `${noun} + ${show(one)}`), ...removed.map((one) => `${noun} - ${show(one)}`)];
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

function sumOf(sections: readonly Section[]): string {
  return sections.map(({ noun, lines }) => count(lines.length, noun)).join(', ');
}

/** Names come from catalogs, and could make lines of their own. */
function shown(name: string): string {
  return /^[\x20-\x7e]+$/.test(name) ? name : quoteGo(name);
}

/** As code, so that nothing in it is taken for Markdown or HTML. */
function code(name: string): string {
  const text = shown(name);
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const pad = longest > 0 ? ' ' : '';
  return `${fence}${pad}${text}${pad}${fence}`;
}
